package genaihttp

import (
	"net/http"
	"slices"
	"strings"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// modelCall is the endpoint of a request that asks a model for something.
func (c *config) modelCall(r *http.Request) (wire.Endpoint, bool) {
	if r.Method != http.MethodPost || r.URL == nil {
		return wire.Endpoint{}, false
	}
	return wire.FindEndpoint(r.URL.Path, c.endpoints...)
}

// operation is what a request asks a model for. One that is no POST is none of the calls
// that are known, so that nothing says it asks for anything; a POST to a path of the
// service's own is taken for a chat.
func operation(r *http.Request, e wire.Endpoint) genaiconv.OperationNameAttr {
	if r.Method != http.MethodPost {
		return bound.Other
	}
	return e.Operation
}

// knownRoutes can be named before a mux has matched: they are the paths
// themselves, so no caller can make up more of them.
var knownRoutes = map[string]bool{
	"/v1/chat/completions": true,
	"/v1/completions":      true,
	"/v1/embeddings":       true,
	"/v1/responses":        true,
	"/v1/messages":         true,
	"/v1/models":           true,
	"/chat/completions":    true,
	"/completions":         true,
	"/completion":          true,
	"/embeddings":          true,
	"/generate":            true,
	"/generate_stream":     true,
	"/api/chat":            true,
	"/api/generate":        true,
	"/api/embed":           true,
}

// route is the low-cardinality form of the path: the pattern that a ServeMux
// matched, or one of the well-known paths, to which those of WithEndpoint belong.
func (c *config) route(r *http.Request) string {
	if r.Pattern != "" {
		pattern := r.Pattern
		if i := strings.IndexByte(pattern, '/'); i >= 0 {
			return pattern[i:] // without method and host
		}
	}
	own := func(e wire.Endpoint) bool { return e.Path == r.URL.Path }
	if knownRoutes[r.URL.Path] || slices.ContainsFunc(c.endpoints, own) {
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
	if route == "" || route == bound.Other {
		return name
	}
	return name + " " + route
}
