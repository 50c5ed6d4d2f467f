package main

import (
	"net/http"
	"strconv"

	"github.com/openai/openai-go/v3/option"

	"github.com/genaitrace/otelgenai/examples/internal/chatclient"
)

// newClient is the user of the gateway.
func newClient(gatewayURL string, transport http.RoundTripper, c *config) *chatclient.Client {
	o := chatclient.Options{
		BaseURL: gatewayURL + "/v1", Transport: transport,
		Model: c.model, Stream: c.stream, MaxTokens: c.maxTokens,
	}
	if c.baseURL == nil {
		o.APIKey = "none" // a real one is for real servers
	}
	return chatclient.New(o)
}

// numberHeader tells the gateway which of several requests it is.
const numberHeader = "X-Request-Number"

func withNumber(n int) option.RequestOption { return option.WithHeader(numberHeader, strconv.Itoa(n)) }
