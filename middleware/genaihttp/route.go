package genaihttp

import (
	"net/http"
	"strings"

	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// operations are the endings of paths that call a model. Paths differ before
// them: "/v1", "/openai/deployments/x", nothing.
var operations = []struct {
	suffix    string
	operation genaiconv.OperationNameAttr
}{
	{"/chat/completions", genaiconv.OperationNameChat},
	{"/completions", genaiconv.OperationNameTextCompletion},
	{"/embeddings", genaiconv.OperationNameEmbeddings},
}

// modelCall says what a request asks a model for, if it does.
func modelCall(r *http.Request) (genaiconv.OperationNameAttr, bool) {
	if r.Method != http.MethodPost {
		return "", false
	}
	path := "/" + strings.TrimPrefix(r.URL.Path, "/")
	for _, o := range operations {
		if strings.HasSuffix(path, o.suffix) {
			return o.operation, true
		}
	}
	return "", false
}

// knownRoutes can be named before a mux has matched: they are the paths
// themselves, so no caller can make up more of them.
var knownRoutes = map[string]bool{
	"/v1/chat/completions": true,
	"/v1/completions":      true,
	"/v1/embeddings":       true,
	"/v1/models":           true,
	"/chat/completions":    true,
	"/completions":         true,
	"/embeddings":          true,
}

// route is the low-cardinality form of the path: the pattern that a ServeMux
// matched, or one of the well-known paths.
func route(r *http.Request) string {
	if r.Pattern != "" {
		pattern := r.Pattern
		if i := strings.IndexByte(pattern, '/'); i >= 0 {
			return pattern[i:] // without method and host
		}
	}
	if knownRoutes[r.URL.Path] {
		return r.URL.Path
	}
	return ""
}

// method is the request method in the words of the conventions.
func method(r *http.Request) (name string, known bool) {
	switch r.Method {
	case "":
		return http.MethodGet, true
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace, "QUERY":
		return r.Method, true
	}
	return "_OTHER", false
}

func spanName(r *http.Request, route string) string {
	name, known := method(r)
	if !known {
		name = "HTTP"
	}
	if route == "" {
		return name
	}
	return name + " " + route
}
