package longwire

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// listening is the state of a listening socket in /proc/net/tcp.
const listening = "0A"

// Network is a network at one end of a link. The names near and far resolve in both networks.
type Network struct {
	Name, Address, Address6 string

	// process is a process in this network that lives as long as the link.
	process int
	link    *Link
}

// Command returns a command that runs a program in this network, like [exec.CommandContext]. It
// execs the program, which ends with the link. The program starts in this process's current
// directory.
func (n *Network) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	// The names near and far are in /etc/hosts of the process's root directory.
	words := []string{fmt.Sprintf("--target=%d", n.process), "--net", "--root"}
	directory, err := os.Getwd()
	if err == nil {
		words = append(words, "--wdns="+directory)
	}
	// Root's links have no user namespace, and the kernel refuses to enter the current one.
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", n.process))
	if ours, _ := os.Readlink("/proc/self/ns/user"); err == nil && ours != theirs {
		words = append(words, "--user", "--preserve-credentials")
	}
	words = append(append(words, "--", name), args...)
	command := exec.CommandContext(ctx, "nsenter", words...)
	select {
	case <-n.link.exited:
		command.Err = ErrEnded
	default:
	}
	return command
}

// WaitListening waits until a process in this network listens on a TCP port.
func (n *Network) WaitListening(ctx context.Context, port int) error {
	for !n.isListening(port) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("nothing listens on port %d of %s: %w", port, n.Name, ctx.Err())
		case <-n.link.exited:
			return ErrEnded
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func (n *Network) isListening(port int) bool {
	wanted := fmt.Sprintf(":%04X", port)
	for _, table := range []string{"tcp", "tcp6"} {
		// Fails if the link has ended.
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", n.process, table))
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) > 3 && fields[3] == listening && strings.HasSuffix(fields[1], wanted) {
				return true
			}
		}
	}
	return false
}
