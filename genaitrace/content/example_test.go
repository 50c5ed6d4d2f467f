package content_test

import (
	"fmt"
	"regexp"

	"github.com/genaitrace/otelgenai/genaitrace/content"
)

func ExampleRedact() {
	fmt.Println(content.Redact("Charge 4111 1111 1111 1111 and write to jane@example.com."))
	// Output: Charge [REDACTED:card] and write to [REDACTED:email].
}

// Arguments of a tool come as a string of JSON; what is cut stays JSON.
func ExampleSanitizer() {
	s := content.Sanitizer{
		Redactors: []content.Redactor{content.Pattern("case", regexp.MustCompile(`CASE-\d+`))},
		Limit:     256,
	}
	value, err := s.Any(content.Redacted, `{"to":"jane\u0040example.com","about":"CASE-4711","copies":2}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(value.JSON())
	// Output: {"about":"[REDACTED:case]","copies":2,"to":"[REDACTED:email]"}
}
