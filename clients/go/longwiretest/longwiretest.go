// Package longwiretest provides tests with an emulated link.
//
//	func TestLogin(t *testing.T) {
//		link := longwiretest.Link(t, longwire.Options{Delay: "20ms", Loss: "1%"})
//		server := link.Far().Command(t.Context(), "./server")
//		...
//		link.Report().Require("artifacts-lost=0")
//	}
package longwiretest

import (
	"testing"

	longwire "github.com/longwire/longwire/clients/go"
	"github.com/longwire/longwire/clients/go/api"
)

// LiveLink is a link that ends with its test. Its methods end the test on failure; those of the
// embedded link return errors.
type LiveLink struct {
	*longwire.Link
	t testing.TB
}

// Link starts a link for a test. Further words are command-line arguments of `longwire exec`. The
// test fails if the link does not start or ends early, or if a "--require=…" argument is not met.
func Link(t testing.TB, options longwire.Options, words ...string) *LiveLink {
	t.Helper()
	link, err := longwire.Start(t.Context(), options, words...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := link.Close(); err != nil {
			t.Error(err)
		}
	})
	return &LiveLink{link, t}
}

// Set changes options of both directions.
func (l *LiveLink) Set(options longwire.Options) {
	l.t.Helper()
	l.check(l.Link.Set(l.t.Context(), options))
}

// Off drops arriving and queued frames until On.
func (l *LiveLink) Off() {
	l.t.Helper()
	l.check(l.Link.Off(l.t.Context()))
}

// On ends Off and Pause.
func (l *LiveLink) On() {
	l.t.Helper()
	l.check(l.Link.On(l.t.Context()))
}

// Stats returns the counters so far, summed over both directions.
func (l *LiveLink) Stats() *api.Stats {
	l.t.Helper()
	stats, err := l.Link.Stats(l.t.Context())
	l.check(err)
	return stats
}

// Report returns the report so far.
func (l *LiveLink) Report() *Report {
	l.t.Helper()
	report, err := l.Link.Report(l.t.Context())
	l.check(err)
	return &Report{report, l.t}
}

func (l *LiveLink) check(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// Report is a report whose requirements can end the test.
type Report struct {
	*longwire.Report
	t testing.TB
}

// Require ends the test unless all conditions hold, such as "artifacts-lost=0,lateness.p99<1ms".
func (r *Report) Require(expression string) {
	r.t.Helper()
	if err := r.Report.Require(expression); err != nil {
		r.t.Fatal(err)
	}
}
