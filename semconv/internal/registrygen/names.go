package main

import "strings"

// initialisms are the parts of a key that camel case alone would misspell.
var initialisms = map[string]string{
	"ai":     "AI",
	"aws":    "AWS",
	"api":    "API",
	"eof":    "EOF",
	"genai":  "GenAI",
	"gpu":    "GPU",
	"http":   "HTTP",
	"id":     "ID",
	"json":   "JSON",
	"kv":     "KV",
	"llm":    "LLM",
	"mcp":    "MCP",
	"openai": "OpenAI",
	"rag":    "RAG",
	"slo":    "SLO",
	"ttft":   "TTFT",
	"uri":    "URI",
	"url":    "URL",
}

// camel turns a.b_c-d into ABCD, each part with its initialism.
func camel(key string) string {
	var b strings.Builder
	for _, part := range strings.FieldsFunc(key, isSeparator) {
		if word, ok := initialisms[part]; ok {
			b.WriteString(word)
			continue
		}
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

func isSeparator(r rune) bool { return r == '.' || r == '_' || r == '-' }

// stripped is key without the namespace that the file's Go names omit.
func (f *File) stripped(key string) string {
	return strings.TrimPrefix(key, f.Strip+".")
}

func (f *File) attributeName(a Attribute) string {
	if a.Go != "" {
		return a.Go
	}
	return camel(f.stripped(a.Key))
}

func (f *File) metricName(m Metric) string {
	if m.Go != "" {
		return m.Go
	}
	return camel(f.stripped(m.Name))
}

func (f *File) memberName(a Attribute, m Member) string {
	if m.Go != "" {
		return f.attributeName(a) + m.Go
	}
	return f.attributeName(a) + camel(m.Value)
}

func (f *File) eventName(e Event) string { return "Event" + camel(f.stripped(e.Name)) }

func (f *File) entityName(e Entity) string { return "Entity" + camel(f.stripped(e.Type)) }

func (f *File) spanName(s Span) string { return "Span" + camel(f.stripped(s.Type)) }

func (f *File) headerName(h Header) string {
	if h.Go != "" {
		return "Header" + h.Go
	}
	return "Header" + camel(h.Name)
}

// kind is what the alias names.
func (a Alias) kind() string {
	if a.Kind == "" {
		return "attribute"
	}
	return a.Kind
}
