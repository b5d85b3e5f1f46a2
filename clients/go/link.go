// Package longwire starts emulated links between two networks of this machine, near and far. It
// requires Linux and the program longwire, but not root.
//
// Tests use [github.com/longwire/longwire/clients/go/longwiretest].
package longwire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/longwire/longwire/clients/go/api"
)

// Options are link options, as on the command line: Options{Delay: "20ms", Rate: "10mbit"}.
type Options = api.Options

// ErrEnded reports that the link has ended, or ended with an error.
var ErrEnded = errors.New("the link has ended")

// StartError reports that a link did not start: an option is invalid, or the system forbids user
// namespaces.
type StartError struct{ Message string }

func (e *StartError) Error() string { return "longwire: " + e.Message }

// RefusedError reports a refused change; nothing was changed.
type RefusedError struct{ Answer api.Error }

func (e *RefusedError) Error() string {
	lines := []string{"longwire: " + e.Answer.Error}
	for _, problem := range e.Answer.Problems {
		if problem.Remedy != "" {
			lines = append(lines, problem.Field+": "+problem.Remedy)
		}
	}
	return strings.Join(lines, "\n")
}

// FidelityError reports an unmet requirement on the run.
type FidelityError struct{ Message string }

func (e *FidelityError) Error() string { return "longwire: " + e.Message }

const (
	// directoryMax is the maximum length of a parent directory in bytes, since a Unix socket path
	// has at most 107.
	directoryMax = 60

	// unmet is the program's exit code for an unmet requirement.
	unmet = 3

	// endTime is the end timeout; the program waits half a second for its processes.
	endTime = 20 * time.Second

	// nearCommand runs in near. A line on stdin requests an orderly end. The end of the stream without
	// a line means that this process died and cannot remove its directory.
	nearCommand = `echo "near $$" >&3; exec 3>&-; read -r line || exec rm -rf -- "$0"`
	farCommand  = `echo "far $$" >&3; exec sleep infinity 3>&-`
)

// Link is a running link.
type Link struct {
	near, far *Network
	client    *http.Client
	program   *exec.Cmd
	stdin     io.WriteCloser
	directory string
	exited    chan struct{}
	close     func() error
	report    *Report
}

// Start starts a link with `longwire exec`. The program is found through the environment variable
// LONGWIRE or in PATH. Further words are command-line arguments: "--preset=lte", "--up-loss=1%".
//
// The link ends with [Link.Close], or when this process exits or is killed. All processes in its
// networks end with it. ctx applies only to the start.
func Start(ctx context.Context, options Options, words ...string) (*Link, error) {
	directory, err := os.MkdirTemp(parentDirectory(), "longwire-go-")
	if err != nil {
		return nil, err
	}
	l := &Link{directory: directory, exited: make(chan struct{})}
	chosen, err := commandWords(options)
	if err == nil {
		err = l.start(ctx, append(chosen, words...))
	}
	if err != nil {
		os.RemoveAll(directory)
		return nil, err
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", l.file("control.sock"))
	}}
	l.close = sync.OnceValue(func() error {
		defer transport.CloseIdleConnections()
		return l.end()
	})
	l.client = &http.Client{Transport: transport}
	return l, nil
}

// start starts the program, and waits until a process runs in each network.
func (l *Link) start(ctx context.Context, words []string) error {
	name := os.Getenv("LONGWIRE")
	if name == "" {
		name = "longwire"
	}
	arguments := append([]string{"exec", "--quiet"}, words...)
	arguments = append(arguments, "--control", l.file("control.sock"), "--report", l.file("report.json"))
	arguments = append(arguments, "--peer-wait", "0s", "--peer", farCommand)
	arguments = append(arguments, "--", "sh", "-c", nearCommand, l.directory)
	l.program = exec.Command(name, arguments...)
	// Use a separate session, so that Ctrl-C reaches only this process, which then ends the link.
	l.program.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stderr, err := os.Create(l.file("stderr"))
	if err != nil {
		return err
	}
	defer stderr.Close()
	l.program.Stdout, l.program.Stderr = stderr, stderr
	hello, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer hello.Close()
	l.program.ExtraFiles = []*os.File{theirs}
	l.stdin, err = l.program.StdinPipe()
	if err == nil {
		err = l.program.Start()
	}
	theirs.Close()
	if err != nil {
		return missing(name, err)
	}
	go func() {
		// The process state contains the exit code.
		_ = l.program.Wait()
		close(l.exited)
	}()
	stop := context.AfterFunc(ctx, l.kill)
	defer stop()
	return l.awaitProcesses(ctx, hello)
}

// missing returns the error for a program that cannot be started.
func missing(name string, err error) error {
	switch {
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, exec.ErrNotFound):
		return &StartError{err.Error()}
	case os.Getenv("LONGWIRE") != "":
		return &StartError{fmt.Sprintf("the environment variable LONGWIRE names %s, which is not a program: set it to the path of longwire, or remove it", name)}
	default:
		return &StartError{"the program longwire is not on PATH; the environment variable LONGWIRE may name it"}
	}
}

// awaitProcesses reads the IDs of the processes in the networks.
func (l *Link) awaitProcesses(ctx context.Context, hello io.Reader) error {
	lines := bufio.NewScanner(hello)
	for (l.near == nil || l.far == nil) && lines.Scan() {
		var name string
		var process int
		if _, err := fmt.Sscan(lines.Text(), &name, &process); err != nil {
			continue
		}
		if name == "near" {
			l.near = &Network{name, "10.77.0.1", "fd77:4c57::1", process, l}
		} else {
			l.far = &Network{name, "10.77.0.2", "fd77:4c57::2", process, l}
		}
	}
	if l.near != nil && l.far != nil {
		return nil
	}
	l.kill()
	<-l.exited
	if err := ctx.Err(); err != nil {
		return err
	}
	return &StartError{l.messages()}
}

// Near returns the network at the near end.
func (l *Link) Near() *Network { return l.near }

// Far returns the network at the far end.
func (l *Link) Far() *Network { return l.far }

// Set changes options of both directions between two frames. Other options are unchanged.
func (l *Link) Set(ctx context.Context, options Options) error {
	return l.set(ctx, "link", options)
}

// SetUp changes options of the direction from near to far.
func (l *Link) SetUp(ctx context.Context, options Options) error {
	return l.set(ctx, "link.up", options)
}

// SetDown changes options of the direction from far to near.
func (l *Link) SetDown(ctx context.Context, options Options) error {
	return l.set(ctx, "link.down", options)
}

func (l *Link) set(ctx context.Context, name string, options Options) error {
	return l.Call(ctx, http.MethodPatch, "/v1/links/"+name, options, nil)
}

// Off drops arriving and queued frames until On.
func (l *Link) Off(ctx context.Context) error {
	return l.Change(ctx, api.Change{Off: "link"})
}

// Pause holds arriving frames, up to the queue limit, until On.
func (l *Link) Pause(ctx context.Context) error {
	return l.Change(ctx, api.Change{Pause: "link"})
}

// On ends Off and Pause.
func (l *Link) On(ctx context.Context) error {
	return l.Change(ctx, api.Change{On: "link"})
}

// Change applies a change like `longwire ctl apply`, atomically.
func (l *Link) Change(ctx context.Context, change api.Change) error {
	return l.Call(ctx, http.MethodPost, "/v1/changes", change, nil)
}

// Stats returns the counters so far, summed over both directions.
func (l *Link) Stats(ctx context.Context) (*api.Stats, error) {
	stats := new(api.Stats)
	return stats, l.Call(ctx, http.MethodGet, "/v1/stats", nil, stats)
}

// Report returns the report: so far while the link runs, complete after Close.
func (l *Link) Report(ctx context.Context) (*Report, error) {
	if l.report != nil {
		return l.report, nil
	}
	report := new(Report)
	if err := l.Call(ctx, http.MethodGet, "/v1/report", nil, report); err != nil {
		return nil, err
	}
	var links struct {
		Links []struct{ Up, Down api.Totals }
	}
	if err := l.Call(ctx, http.MethodGet, "/v1/links", nil, &links); err != nil {
		return nil, err
	}
	for _, link := range links.Links {
		report.Links = append(report.Links,
			DirectionReport{"link.up", link.Up}, DirectionReport{"link.down", link.Down})
	}
	return report, nil
}

// Close ends the link and the processes in its networks. It returns a [FidelityError] if a
// "--require=…" argument is not met. Further calls return the same.
func (l *Link) Close() error { return l.close() }

func (l *Link) end() error {
	timer := time.AfterFunc(endTime, l.kill)
	defer timer.Stop()
	// Both fail if the program has ended.
	_, _ = io.WriteString(l.stdin, "end\n")
	_ = l.stdin.Close()
	<-l.exited
	defer os.RemoveAll(l.directory)
	if text, err := os.ReadFile(l.file("report.json")); err == nil {
		var report Report
		if err := json.Unmarshal(text, &report); err != nil {
			return fmt.Errorf("longwire: the report: %w", err)
		}
		l.report = &report
	}
	switch l.program.ProcessState.ExitCode() {
	case 0:
		return nil
	case unmet:
		return &FidelityError{l.messages()}
	}
	return fmt.Errorf("%w: %v: %s", ErrEnded, l.program.ProcessState, l.messages())
}

func (l *Link) kill() { _ = l.program.Process.Kill() }

func (l *Link) file(name string) string { return filepath.Join(l.directory, name) }

// messages returns the program's output.
func (l *Link) messages() string {
	text, _ := os.ReadFile(l.file("stderr"))
	var kept []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "the peer does not") && !strings.HasPrefix(line, "For more information") {
			kept = append(kept, line)
		}
	}
	return strings.TrimPrefix(strings.TrimSpace(strings.Join(kept, "")), "error: ")
}

// Call sends a request to the control API: link.Call(ctx, "GET", "/v1/report", nil, &report). The
// body and the answer are types of package api; either may be nil. If the run refuses the request,
// Call returns a [RefusedError].
func (l *Link) Call(ctx context.Context, method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, content)
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := l.client.Do(request)
	if err != nil {
		return fmt.Errorf("longwire: %w", errors.Join(ErrEnded, err))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("longwire: %w", errors.Join(ErrEnded, err))
	}
	if response.StatusCode != http.StatusOK {
		var refused RefusedError
		if json.Unmarshal(text, &refused.Answer) != nil {
			return fmt.Errorf("longwire: %s", response.Status)
		}
		return &refused
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// commandWords converts options to command-line arguments, sorted by name.
func commandWords(options Options) ([]string, error) {
	text, err := json.Marshal(options)
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	// Numbers are kept as written.
	decoder.UseNumber()
	if err := decoder.Decode(&values); err != nil {
		return nil, err
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list, isList := values[name].([]any)
		if !isList {
			list = []any{values[name]}
		}
		for _, value := range list {
			words = append(words, fmt.Sprintf("--%s=%v", name, value))
		}
	}
	return words, nil
}

// parentDirectory returns the parent of private directories.
func parentDirectory() string {
	if len(os.TempDir()) > directoryMax {
		return "/tmp"
	}
	return os.TempDir()
}
