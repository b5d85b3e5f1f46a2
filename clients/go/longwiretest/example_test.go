package longwiretest_test

import (
	"testing"

	longwire "github.com/longwire/longwire/clients/go"
	"github.com/longwire/longwire/clients/go/longwiretest"
)

func TestDownload(t *testing.T) {
	link := longwiretest.Link(t, longwire.Options{Delay: "20ms", Rate: "10mbit", Loss: "1%"})
	server := link.Far().Command(t.Context(), "python3", "-m", "http.server", "8000")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if err := link.Far().WaitListening(t.Context(), 8000); err != nil {
		t.Fatal(err)
	}
	client := link.Near().Command(t.Context(), "curl", "-sS", "http://far:8000")
	if output, err := client.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	link.Report().Require("artifacts-lost=0")
}
