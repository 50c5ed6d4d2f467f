package contract

import (
	"fmt"
	"time"

	"github.com/genaitrace/otelgenai/capture"
)

// owedLogs are the log records that spans should leave, and those that there are, until
// the end: they come in any order.
type owedLogs struct {
	owed     []owedLog
	written  []writtenLog
	forgot   bool            // nobody knows all that was written
	services map[string]bool // that write records of events of the contract
}

// owedLog is a record that a span should leave.
type owedLog struct {
	writtenLog
	start   time.Time
	service string
}

// writtenLog is a record of a span.
type writtenLog struct {
	rule *logRule
	on   spanRef
}

// maxLogging bounds the services that are known to write log records; those beyond are
// not judged.
const maxLogging = 1 << 10

// wrote notes a record.
func (o *owedLogs) wrote(r *logRule, l *capture.Log) {
	if o.services == nil {
		o.services = map[string]bool{}
	}
	if len(o.services) < maxLogging {
		o.services[l.Resource.Service()] = true
	}
	if r.count == nil {
		return
	}
	if len(o.written) >= maxRemembered {
		o.forgot = true
		return
	}
	o.written = append(o.written, writtenLog{r, spanRef{l.TraceID, l.SpanID}})
}

// oweLogs notes which records a span should leave.
func (k *Checker) oweLogs(i int, s *capture.Span) {
	for _, r := range k.contract.program.logged {
		if k.view.roles[i]&r.of == 0 || !s.Ended() || len(k.owed.owed) >= maxRemembered || !r.when.holds(&k.view, i) {
			continue
		}
		k.owed.owed = append(k.owed.owed, owedLog{writtenLog{r, spanRef{s.TraceID, s.SpanID}}, s.Start, s.Resource.Service()})
	}
}

// judgeOwedLogs holds what spans should have left against what there is.
func (k *Checker) judgeOwedLogs() {
	if k.owed.forgot || k.dropped > 0 || len(k.owed.services) == 0 {
		return
	}
	written := make(map[writtenLog]int, len(k.owed.written))
	for _, w := range k.owed.written {
		written[w]++
	}
	for _, o := range k.owed.owed {
		if !k.owed.services[o.service] {
			continue
		}
		k.test(o.rule.count)
		n := written[o.writtenLog]
		if n == 1 {
			continue
		}
		k.findAt(o.rule.count, place{time: o.start, trace: o.on.trace, span: o.on.span}, "", "", func(f *Finding) {
			f.Message = fmt.Sprintf("a span left %d records of %s", n, o.rule.name)
			f.Expected, f.Found = "1", fmt.Sprint(n)
		})
	}
}
