package longwire_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	longwire "github.com/longwire/longwire/clients/go"
)

// holdVariable is the environment variable that makes this program hold a link; its value selects
// how the program ends.
const holdVariable = "LONGWIRE_TEST_HOLD"

func TestMain(m *testing.M) {
	if ending := os.Getenv(holdVariable); ending != "" {
		if err := hold(context.Background(), ending); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// hold starts a link with processes in it, prints its networks, and ends.
func hold(ctx context.Context, ending string) error {
	link, err := longwire.Start(ctx, longwire.Options{Delay: "1ms"})
	if err != nil {
		return err
	}
	if err := link.Near().Command(ctx, "sleep", "1000").Start(); err != nil {
		return err
	}
	if err := link.Far().Command(ctx, "sh", "-c", "setsid sleep 1000 & wait").Start(); err != nil {
		return err
	}
	for _, network := range []*longwire.Network{link.Near(), link.Far()} {
		show := network.Command(ctx, "readlink", "/proc/self/ns/net")
		show.Stdout = os.Stdout
		if err := show.Run(); err != nil {
			return err
		}
	}
	switch ending {
	case "close":
		return link.Close()
	case "exit":
		os.Exit(3)
	case "panic":
		panic("by the test")
	case "SIGTERM":
		err = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		time.Sleep(time.Minute)
	case "SIGKILL":
		err = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	}
	return err
}

func TestAnEndLeavesNothingBehind(t *testing.T) {
	for _, ending := range []string{"close", "return", "exit", "panic", "SIGTERM", "SIGKILL"} {
		t.Run(ending, func(t *testing.T) { assertNothingLeft(t, ending, os.Args[0]) })
	}
}

func TestAnOrdinaryUserNeedsNoRoot(t *testing.T) {
	user := []string{"unshare", "--user", "--map-user=1000", "--map-group=1000", os.Args[0]}
	assertNothingLeft(t, "SIGKILL", user...)
}

// assertNothingLeft runs this program with a link and checks that nothing remains afterwards.
func assertNothingLeft(t *testing.T, ending string, words ...string) {
	directory := t.TempDir()
	holder := exec.CommandContext(t.Context(), words[0], words[1:]...)
	holder.Env = append(os.Environ(), holdVariable+"="+ending, "TMPDIR="+directory)
	output, err := holder.Output()
	if (err == nil) != (ending == "close" || ending == "return") {
		t.Errorf("the end of the holder: %v", err)
	}
	ours := strings.Fields(string(output))
	own, _ := os.Readlink("/proc/self/ns/net")
	if len(ours) != 2 || ours[0] == ours[1] || slices.Contains(ours, own) {
		t.Fatalf("the networks of the holder: %q", ours)
	}
	var left []string
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		files, _ := filepath.Glob(filepath.Join(directory, "*"))
		left = append(processes(ours), files...)
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("left behind: %q", left)
}

// processes returns the processes in any of the network namespaces.
func processes(networks []string) []string {
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	return slices.DeleteFunc(links, func(path string) bool {
		network, err := os.Readlink(path)
		return err != nil || !slices.Contains(networks, network)
	})
}
