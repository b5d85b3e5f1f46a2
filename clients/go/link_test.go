package longwire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	longwire "github.com/longwire/longwire/clients/go"
	"github.com/longwire/longwire/clients/go/api"
	"github.com/longwire/longwire/clients/go/longwiretest"
)

var timePattern = regexp.MustCompile(`time=([\d.]+)`)

// assertRoundTrip checks round trips from near to far, in milliseconds, and returns the number of
// pings. None may be below least, and one must be below most: a busy machine delays some, not all.
func assertRoundTrip(t *testing.T, link *longwiretest.LiveLink, least, most float64) int {
	t.Helper()
	const count = 5
	var times []float64
	for sent := count; ; sent += count {
		ping := link.Near().Command(t.Context(), "ping", "-c", strconv.Itoa(count), "-i", "0.02", "far")
		output, err := ping.Output()
		if err != nil {
			t.Fatalf("ping: %v: %s", err, output)
		}
		for _, match := range timePattern.FindAllSubmatch(output, -1) {
			found, err := strconv.ParseFloat(string(match[1]), 64)
			if err != nil {
				t.Fatal(err)
			}
			times = append(times, found)
		}
		found := slices.Min(times)
		if found >= least && found < most {
			return sent
		}
		if found < least || sent == 10*count {
			t.Errorf("the round trip is %v ms, and not from %v to %v", found, least, most)
			return sent
		}
	}
}

func TestLinkHasItsDelayAndChanges(t *testing.T) {
	link := longwiretest.Link(t, longwire.Options{Delay: "20ms", Rate: "10mbit"})
	pings := assertRoundTrip(t, link, 40, 90)
	link.Set(longwire.Options{Delay: "50ms"})
	pings += assertRoundTrip(t, link, 100, 150)
	if err := link.SetUp(t.Context(), longwire.Options{Delay: "10ms"}); err != nil {
		t.Fatal(err)
	}
	pings += assertRoundTrip(t, link, 60, 95)
	if err := link.SetDown(t.Context(), longwire.Options{Delay: "20ms"}); err != nil {
		t.Fatal(err)
	}
	pings += assertRoundTrip(t, link, 30, 55)
	stats := link.Stats()
	// After a pause of the machine, ping may end before its last reply.
	for tries := 0; tries < 50 && stats.Totals.PacketsIn < 2*pings; tries++ {
		time.Sleep(100 * time.Millisecond)
		stats = link.Stats()
	}
	if stats.Links != 2 || stats.Totals.PacketsIn != 2*pings {
		t.Errorf("%d links, %d frames of %d pings", stats.Links, stats.Totals.PacketsIn, pings)
	}
	link.Report().Require(fmt.Sprintf("artifacts-lost=0,link.up.packets_in=%d", pings))
}

func TestWordsOfTheCommandLine(t *testing.T) {
	options := longwire.Options{Delay: "1ms", Mtu: 1400, Loss: []string{"0%", "0.0%"}}
	link := longwiretest.Link(t, options, "--up-delay=20ms", "--down-delay=40ms", "--seed=7")
	assertRoundTrip(t, link, 60, 75)
	if seed := link.Report().Seed; seed != 7 {
		t.Errorf("the seed is %d", seed)
	}
	var found api.Link
	if err := link.Call(t.Context(), "GET", "/v1/links/link", nil, &found); err != nil {
		t.Fatal(err)
	}
	if up := found.Up.Options; up.Mtu != "1400" || up.Delay != "20ms" {
		t.Errorf("options of link.up: %+v", up)
	}
}

func TestPlannedChange(t *testing.T) {
	link := longwiretest.Link(t, longwire.Options{})
	in := "3s"
	set := map[string]api.Options{"link": {Delay: "30ms"}}
	if err := link.Change(t.Context(), api.Change{In: &in, Set: &set}); err != nil {
		t.Fatal(err)
	}
	assertRoundTrip(t, link, 0, 50)
	time.Sleep(3500 * time.Millisecond)
	assertRoundTrip(t, link, 60, 100)
}

func TestOutage(t *testing.T) {
	link := longwiretest.Link(t, longwire.Options{})
	ping := func() error {
		return link.Near().Command(t.Context(), "ping", "-c", "1", "-W", "1", "far").Run()
	}
	link.Off()
	if ping() == nil {
		t.Error("a frame crossed a link that is off")
	}
	link.On()
	if err := ping(); err != nil {
		t.Error(err)
	}
	link.Report().Require("artifacts-lost=0,up.drops.outage>=1")
}

func TestRefusals(t *testing.T) {
	_, err := longwire.Start(t.Context(), longwire.Options{Delay: "soon"})
	var start *longwire.StartError
	if !errors.As(err, &start) || !strings.Contains(start.Message, "invalid value 'soon' for '--delay") {
		t.Errorf("the start: %v", err)
	}
	link := longwiretest.Link(t, longwire.Options{})
	err = link.Link.Set(t.Context(), longwire.Options{Delay: "soon"})
	var refused *longwire.RefusedError
	if !errors.As(err, &refused) || refused.Answer.Problems[0].Field != "set.link.delay" {
		t.Errorf("the change: %v", err)
	}
}

func TestMissingProgramIsNamed(t *testing.T) {
	t.Setenv("LONGWIRE", "/nowhere/longwire")
	_, err := longwire.Start(t.Context(), longwire.Options{})
	if err == nil || !strings.Contains(err.Error(), "LONGWIRE names /nowhere/longwire, which is not a program") {
		t.Error(err)
	}
}

func TestStartThatIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := longwire.Start(ctx, longwire.Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestProgramAndReportAgreeAboutRequirements(t *testing.T) {
	for _, expression := range []string{
		"packets_in>=2",
		"packets_in>2",
		"drops.loss=0",
		"drops<1%",
		"down.drops=0",
		"link.up.packets_out=0",
		"artifacts-lost=0,lateness.p99<1s",
		"lateness.max<1ns",
		"lateness-own.p50<1s,pauses.max<1ns",
		"pauses.count>1000000",
	} {
		link, err := longwire.Start(t.Context(), longwire.Options{}, "--up-loss=100%", "--require="+expression)
		if err != nil {
			t.Fatal(err)
		}
		ping := link.Near().Command(t.Context(), "ping", "-c", "2", "-i", "0.01", "-W", "0.1", "far")
		if ping.Run() == nil {
			t.Error("a frame crossed a link that loses all")
		}
		var byProgram, byReport *longwire.FidelityError
		if err := link.Close(); err != nil && !errors.As(err, &byProgram) {
			t.Fatal(err)
		}
		report, err := link.Report(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := report.Require(expression); err != nil && !errors.As(err, &byReport) {
			t.Fatal(err)
		}
		if (byProgram == nil) != (byReport == nil) {
			t.Errorf("%s: the program: %v, the report: %v", expression, byProgram, byReport)
		}
	}
}

func TestExpressionThatCannotBeRead(t *testing.T) {
	report := longwiretest.Link(t, longwire.Options{}).Report()
	for _, expression := range []string{"", "drops", "drops<x", "lateness.p99<5", "tea=1", "drops=5%%"} {
		var unmet *longwire.FidelityError
		if err := report.Report.Require(expression); err == nil || errors.As(err, &unmet) {
			t.Errorf("'%s' was read: %v", expression, err)
		}
	}
}

func TestProcesses(t *testing.T) {
	t.Chdir("/usr")
	link := longwiretest.Link(t, longwire.Options{})
	command := link.Far().Command(t.Context(), "sh", "-c", `pwd; echo "$TEA"; cat; exit 5`)
	command.Stdin = strings.NewReader("input\n")
	command.Env = append(os.Environ(), "TEA=ok")
	output, err := command.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 5 || string(output) != "/usr\nok\ninput\n" {
		t.Errorf("%q, %v", output, err)
	}
}

func TestServerIsAwaited(t *testing.T) {
	link := longwiretest.Link(t, longwire.Options{Delay: "5ms"})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := link.Far().WaitListening(ctx, 8000); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	server := link.Far().Command(t.Context(), "python3", "-m", "http.server", "8000")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if err := link.Far().WaitListening(t.Context(), 8000); err != nil {
		t.Fatal(err)
	}
	curl := link.Near().Command(t.Context(), "curl", "-sS", "-o/dev/null", "-w%{http_code}", "far:8000")
	if output, err := curl.CombinedOutput(); err != nil || !bytes.Equal(output, []byte("200")) {
		t.Errorf("%s, %v", output, err)
	}
}

func TestAfterTheEnd(t *testing.T) {
	link, err := longwire.Start(t.Context(), longwire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(link.Close(), link.Close()); err != nil {
		t.Fatal(err)
	}
	if report, err := link.Report(t.Context()); err != nil || len(report.Links) != 2 {
		t.Error(report, err)
	}
	if err := link.Near().Command(t.Context(), "true").Run(); !errors.Is(err, longwire.ErrEnded) {
		t.Error(err)
	}
	if err := link.Set(t.Context(), longwire.Options{Delay: "1ms"}); !errors.Is(err, longwire.ErrEnded) {
		t.Error(err)
	}
}
