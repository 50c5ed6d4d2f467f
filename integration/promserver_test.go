package integration_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scrape is one job of a Prometheus.
type scrape struct {
	job, target string
	keepJob     bool // honor_labels: the target says which job each series is of
}

// promServer is a Prometheus, asked over its API.
type promServer struct{ api string }

// startPrometheus scrapes twice a second, keeps exemplars, and evaluates rules.
func startPrometheus(t *testing.T, program string, rules []string, jobs ...scrape) promServer {
	t.Helper()
	dir := t.TempDir()
	var config strings.Builder
	config.WriteString("global: {scrape_interval: 500ms, evaluation_interval: 500ms}\nrule_files:\n")
	for _, file := range rules {
		path, err := filepath.Abs(file)
		require.NoError(t, err)
		fmt.Fprintf(&config, "  - %q\n", path)
	}
	config.WriteString("scrape_configs:\n")
	for _, j := range jobs {
		fmt.Fprintf(&config, "  - {job_name: %q, honor_labels: %t, static_configs: [{targets: [%q]}]}\n", j.job, j.keepJob, j.target)
	}
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config.String()), 0o600))

	p := promServer{api: address(t)}
	start(t, program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+p.api, "--enable-feature=exemplar-storage")
	eventually(t, "Prometheus is ready", func() error { return get(t, "http://"+p.api+"/-/ready", nil) })
	return p
}

// get asks one of the endpoints of the API.
func (p promServer) get(t *testing.T, path string, values url.Values, into any) error {
	return get(t, "http://"+p.api+"/api/v1/"+path+"?"+values.Encode(), into)
}

// sample is one series of an answer, now.
type sample struct {
	labels map[string]string
	value  float64
}

// query evaluates an expression.
func (p promServer) query(t *testing.T, expr string) ([]sample, error) {
	var got struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := p.get(t, "query", url.Values{"query": {expr}}, &got); err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	var samples []sample
	for _, r := range got.Data.Result {
		value, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", expr, err)
		}
		samples = append(samples, sample{r.Metric, value})
	}
	return samples, nil
}

// value is the sum of an expression; that it has no series is an error.
func (p promServer) value(t *testing.T, expr string) (float64, error) {
	samples, err := p.query(t, "sum("+expr+")")
	if err == nil && len(samples) != 1 {
		err = fmt.Errorf("%s has no value", expr)
	}
	if err != nil {
		return 0, err
	}
	return samples[0].value, nil
}

// reaches waits until the sum of an expression is want.
func (p promServer) reaches(t *testing.T, expr string, want float64) {
	t.Helper()
	eventually(t, expr, func() error {
		got, err := p.value(t, expr)
		if err == nil && got != want {
			err = fmt.Errorf("%s is %v, want %v", expr, got, want)
		}
		return err
	})
}
