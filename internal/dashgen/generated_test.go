package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/semconv"
)

const published = "../../docs/dashboards"

func TestWhatIsPublishedIsWhatIsGenerated(t *testing.T) {
	files, err := generate()
	require.NoError(t, err)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(published, name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "%s: run go run ./internal/dashgen", name)
	}
}

func TestQueriesAreHeldAgainstTheRegistry(t *testing.T) {
	for _, tt := range []struct {
		name string
		ask  func(*queries) string
		want string
	}{
		{"no such metric", func(q *queries) string { return q.rate(rule, "gen_ai.server.speed", selection{}) }, "is no metric"},
		{"an older name", func(q *queries) string {
			return q.rate(rule, "gen_ai.client.operation.time_per_output_chunk", selection{})
		}, "is an older name"},
		{"another instrument", func(q *queries) string { return q.increase(rule, queueWait, selection{}) }, "is a histogram, not a counter"},
		{"no such label", func(q *queries) string { return q.rate(rule, queueWait, by("tenant")) }, "has no attribute tenant"},
		{"no such label to choose by", func(q *queries) string { return q.rate(rule, queueWait, selection{}.with("tenant", "a")) }, "has no attribute tenant"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := &queries{}
			tt.ask(q)
			assert.ErrorContains(t, q.err(), tt.want)
		})
	}
}

func TestNamesInPrometheus(t *testing.T) {
	for name, want := range map[string]string{
		"gen_ai.server.time_to_first_token": "gen_ai_server_time_to_first_token_seconds",
		"genai.tokens":                      "genai_tokens_total",
		"genai.token.rate":                  "genai_token_rate_per_second",
		"genai.kv_cache.hit_ratio":          "genai_kv_cache_hit_ratio",
		"genai.active_requests":             "genai_active_requests",
	} {
		m, ok := semconv.LookupMetric(name)
		require.True(t, ok, name)
		assert.Equal(t, want, prometheusName(m))
	}
}

// dashboardFile is what the tests read of the dashboard.
type dashboardFile struct {
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr, LegendFormat string }
	}
}

func readDashboard(t *testing.T) dashboardFile {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(published, "grafana.json"))
	require.NoError(t, err)
	var d dashboardFile
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

func TestPanelsHaveTheirPlace(t *testing.T) {
	taken := make(map[[2]int]string)
	ids := make(map[int]bool)
	for _, p := range readDashboard(t).Panels {
		assert.False(t, ids[p.ID], "%d is the id of two panels", p.ID)
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				assert.Empty(t, taken[[2]int{x, y}], p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		if p.Type != "row" {
			assert.NotEmpty(t, p.Targets, p.Title)
		}
	}
}

// TestPrometheusUnderstandsThem asks promtool, which PROMTOOL names: every query of the
// dashboard as a rule, the rules, and what they say of made-up telemetry.
func TestPrometheusUnderstandsThem(t *testing.T) {
	promtool := os.Getenv("PROMTOOL")
	if promtool == "" {
		t.Skip("PROMTOOL names no promtool to ask")
	}
	ask := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = published
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, string(out))
	}
	ask("check", "rules", "rules.yaml")
	ask("test", "rules", "rules_test.yaml")

	var asked []promRule
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			expr := strings.NewReplacer(window, "5m", "$job", ".*").Replace(target.Expr)
			asked = append(asked, promRule{Record: "panel", Labels: map[string]string{"title": p.Title, "legend": target.LegendFormat}, Expr: expr})
		}
	}
	text, err := yaml.Marshal(map[string][]group{"groups": {{Name: "panels", Rules: asked}}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "panels.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	ask("check", "rules", file)
}
