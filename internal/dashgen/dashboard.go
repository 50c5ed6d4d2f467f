package main

import (
	"encoding/json"
	"fmt"
)

// panel is one panel of the dashboard, before Grafana's JSON.
type panel struct {
	title, about string
	kind         string // timeseries or heatmap
	unit         string // Grafana's
	stacked      bool
	exemplars    bool
	targets      []target
}

type target struct{ legend, expr string }

type row struct {
	title  string
	panels []panel
}

func legend(keys ...string) string {
	text := ""
	for _, key := range keys {
		text += " {{" + label(key) + "}}"
	}
	return text[1:]
}

// quantiles are the lines of a histogram that a panel draws.
func quantiles(q *queries, name string, s selection) []target {
	var out []target
	for _, share := range []float64{0.5, 0.95, 0.99} {
		out = append(out, target{fmt.Sprintf("p%.0f %s", share*100, legend(s.by...)), q.quantile(dashboard, share, name, s)})
	}
	return out
}

func rows(q *queries) []row {
	byModel := by(model)
	return []row{
		{"What callers of models see", []panel{
			{title: "Calls a second", kind: "timeseries", unit: "reqps", targets: []target{{legend(model), q.rate(dashboard, callDuration, byModel)}}},
			{title: "Failed calls", about: "By error.type; what a client cancelled is none.", kind: "timeseries", unit: "reqps", stacked: true,
				targets: []target{{legend(errorKind), q.failures(dashboard, callDuration, by(errorKind))}}},
			{title: "Duration of a call", kind: "timeseries", unit: "s", targets: quantiles(q, callDuration, byModel)},
			{title: "Calls and requests under way", kind: "timeseries", unit: "short", targets: []target{
				{"calls of " + legend(model), q.current(dashboard, activeCalls, byModel)},
				{"requests, " + legend(role), q.current(dashboard, activeServed, by(role))},
			}},
		}},
		{"The first token", []panel{
			{title: "Time to first token, at each hop", about: "From the arrival at that hop to the first generated output. The points are requests: they open their trace.",
				kind: "timeseries", unit: "s", exemplars: true, targets: quantiles(q, hopTTFT, by(role))},
			{title: "Slow first tokens", about: "The slowest one in a hundred, by model. The points are requests: they open their trace.",
				kind: "timeseries", unit: "s", exemplars: true, targets: []target{{legend(model), q.quantile(dashboard, 0.99, hopTTFT, byModel)}}},
			{title: "Time to first token in the engine", kind: "heatmap", unit: "s", exemplars: true, targets: []target{{"{{le}}", q.buckets(dashboard, hostTTFT, selection{})}}},
			{title: "Where the first token's time goes in the engine", about: "Means. The rest is the tokenizer, the scheduler and what no phase covers.",
				kind: "timeseries", unit: "s", stacked: true, targets: []target{
					{"queue", q.mean(dashboard, queueWait, selection{})},
					{"prefill", q.mean(dashboard, prefill, selection{})},
					{"rest", "clamp_min(" + parens(q.mean(dashboard, hostTTFT, selection{})) +
						" - (" + parens(q.mean(dashboard, queueWait, selection{})) + " or vector(0)) - (" +
						parens(q.mean(dashboard, prefill, selection{})) + " or vector(0)), 0)"},
				}},
		}},
		{"Where the model runs", []panel{
			{title: "Wait in the queue", kind: "timeseries", unit: "s", targets: quantiles(q, queueWait, byModel)},
			{title: "Prefill", kind: "timeseries", unit: "s", targets: quantiles(q, prefill, byModel)},
			{title: "Time per output token", about: "(last token − first token) / (tokens − 1) of a request.", kind: "timeseries", unit: "s", targets: quantiles(q, hostCadence, byModel)},
			{title: "Tokens a second of one request", kind: "timeseries", unit: "none", targets: quantiles(q, tokenRate, byModel)},
			{title: "Tokens a second of the process", kind: "timeseries", unit: "none", stacked: true,
				targets: []target{{legend(direction, model), q.increase(dashboard, tokens, by(direction, model))}}},
			{title: "Prompt found in the KV cache", about: "Mean share.", kind: "timeseries", unit: "percentunit", targets: []target{{legend(model), q.mean(dashboard, cacheHits, byModel)}}},
			{title: "Stalls a second", about: "Pauses between tokens that are long for their stream.", kind: "timeseries", unit: "none", targets: []target{{legend(model), q.increase(dashboard, stalls, byModel)}}},
			{title: "Requests that run together", about: "Mean size of a batch.", kind: "timeseries", unit: "none", targets: []target{{legend(model), q.mean(dashboard, batchSize, byModel)}}},
		}},
		{"Cost", []panel{
			{title: "Tokens of calls a second", kind: "timeseries", unit: "none", targets: []target{
				{"in, " + legend(model), q.increase(dashboard, callInput, byModel)},
				{"out, " + legend(model), q.increase(dashboard, callOutput, byModel)},
			}},
			{title: "US dollars an hour", about: "Needs prices: the series " + priceOfInput + " and " + priceOfOutput + ", see the README of these files.",
				kind: "timeseries", unit: "currencyUSD", targets: []target{{legend(model), cost(q)}}},
		}},
		{"Telemetry itself", []panel{
			{title: "Wrong input a second", about: "What telemetry was given and had to drop.", kind: "timeseries", unit: "none",
				targets: []target{{legend("genai.fault"), q.increase(dashboard, faults, by("genai.fault"))}}},
		}},
	}
}

func parens(expr string) string { return "(" + expr + ")" }

// cost multiplies tokens with prices. A model without a price is left out, not free.
func cost(q *queries) string {
	side := func(name, price string) string {
		return fmt.Sprintf("%s * on (%s) group_left () %s", q.increase(dashboard, name, by(model)), label(model), price)
	}
	return "3600 * (" + side(callInput, priceOfInput) + " + " + side(callOutput, priceOfOutput) + ")"
}

// dashboardJSON writes the dashboard as Grafana imports it.
func dashboardJSON(q *queries) ([]byte, error) {
	const width, height = 12, 8
	var panels []map[string]any
	id, y := 0, 0
	next := func() int { id++; return id }
	for _, r := range rows(q) {
		panels = append(panels, map[string]any{
			"id": next(), "type": "row", "title": r.title, "collapsed": false, "panels": []any{},
			"gridPos": map[string]int{"x": 0, "y": y, "w": 2 * width, "h": 1},
		})
		y++
		for i, p := range r.panels {
			panels = append(panels, grafanaPanel(p, next(), i%2*width, y, width, height))
			if i%2 == 1 || i == len(r.panels)-1 {
				y += height
			}
		}
	}
	out, err := json.MarshalIndent(map[string]any{
		"title":         "Generative AI requests",
		"uid":           "otelgenai",
		"tags":          []string{"genai", "opentelemetry"},
		"schemaVersion": 39,
		"editable":      true,
		"graphTooltip":  1,
		"refresh":       "30s",
		"time":          map[string]string{"from": "now-1h", "to": "now"},
		"templating":    map[string]any{"list": variables(q)},
		"annotations":   map[string]any{"list": []any{}},
		"panels":        panels,
	}, "", "  ")
	return append(out, '\n'), err
}

func variables(q *queries) []map[string]any {
	series := q.metric(callDuration, "histogram", selection{}) + "_count"
	served := q.metric(hostDuration, "histogram", selection{}) + "_count"
	return []map[string]any{
		{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "refresh": 1},
		{
			"name": "job", "label": "Job", "type": "query", "datasource": datasource(), "refresh": 2,
			"query":      map[string]string{"query": fmt.Sprintf(`label_values({__name__=~"%s|%s"}, job)`, series, served), "refId": "jobs"},
			"includeAll": true, "multi": true, "allValue": ".*", "current": map[string]any{"text": "All", "value": "$__all"},
		},
	}
}

func datasource() map[string]string {
	return map[string]string{"type": "prometheus", "uid": "${datasource}"}
}

func grafanaPanel(p panel, id, x, y, width, height int) map[string]any {
	var targets []map[string]any
	for i, t := range p.targets {
		one := map[string]any{
			"refId": string(rune('A' + i)), "expr": t.expr, "legendFormat": t.legend, "datasource": datasource(),
			"exemplar": p.exemplars, "range": true,
		}
		if p.kind == "heatmap" {
			one["format"] = "heatmap"
		}
		targets = append(targets, one)
	}
	defaults := map[string]any{"unit": p.unit}
	options := map[string]any{"legend": map[string]any{"displayMode": "list", "placement": "bottom"}, "tooltip": map[string]string{"mode": "multi"}}
	if p.kind == "heatmap" {
		options = map[string]any{"calculate": false, "yAxis": map[string]string{"unit": p.unit}, "exemplars": map[string]string{"color": "rgba(255,0,255,0.7)"}}
	} else {
		defaults["min"] = 0
		custom := map[string]any{"showPoints": "never"}
		if p.stacked {
			custom["stacking"] = map[string]string{"mode": "normal"}
			custom["fillOpacity"] = 30
		}
		defaults["custom"] = custom
	}
	return map[string]any{
		"id": id, "type": p.kind, "title": p.title, "description": p.about, "datasource": datasource(),
		"gridPos":     map[string]int{"x": x, "y": y, "w": width, "h": height},
		"targets":     targets,
		"fieldConfig": map[string]any{"defaults": defaults, "overrides": []any{}},
		"options":     options,
	}
}
