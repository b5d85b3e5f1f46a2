package longwiretest_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	longwire "github.com/longwire/longwire/clients/go"
	"github.com/longwire/longwire/clients/go/longwiretest"
)

// recorder is a testing.TB that records failures.
type recorder struct {
	testing.TB
	failures []any
	cleanups []func()
}

func (r *recorder) Cleanup(f func())      { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Error(messages ...any) { r.failures = append(r.failures, messages...) }
func (r *recorder) Fatal(messages ...any) {
	r.Error(messages...)
	runtime.Goexit()
}

// failures runs a test and returns its failures.
func failures(t *testing.T, test func(t testing.TB)) []any {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	for _, cleanup := range r.cleanups {
		cleanup()
	}
	return r.failures
}

func TestWhatFailsATest(t *testing.T) {
	options := longwire.Options{}
	for name, test := range map[string]func(t testing.TB){
		"a wrong option": func(t testing.TB) {
			longwiretest.Link(t, longwire.Options{Delay: "soon"})
		},
		"a wrong change": func(t testing.TB) {
			longwiretest.Link(t, options).Set(longwire.Options{Delay: "soon"})
		},
		"a requirement": func(t testing.TB) {
			longwiretest.Link(t, options).Report().Require("packets_in>0")
		},
		"a requirement at the end": func(t testing.TB) {
			longwiretest.Link(t, options, "--require=packets_in>0")
		},
	} {
		if found := failures(t, test); len(found) != 1 {
			t.Errorf("%s: %v", name, found)
		}
	}
	passes := func(t testing.TB) { longwiretest.Link(t, options).Report().Require("packets_in=0") }
	if found := failures(t, passes); len(found) != 0 {
		t.Error(found)
	}
}

func TestReadmeShowsTheExample(t *testing.T) {
	const start = "func TestDownload"
	readme, _ := os.ReadFile("../README.md")
	example, err := os.ReadFile("example_test.go")
	_, text, found := strings.Cut(string(example), start)
	if err != nil || !found || !strings.Contains(string(readme), start+text) {
		t.Error("README.md does not show example_test.go")
	}
}
