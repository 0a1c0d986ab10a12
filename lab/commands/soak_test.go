package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/lab/soak"
)

// TestAServerIsAsBeforeAfterHundredsOfRequests is a short run of lab/tools/soak.
func TestAServerIsAsBeforeAfterHundredsOfRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("computes hundreds of answers")
	}
	opt := soak.Options{
		Command: []string{must(os.Executable())}, Env: []string{asCommand + "=1", "HOME=" + t.TempDir()}, Reader: must(filepath.Abs(readingModel)),
		Requests: 300, Clients: 24, Seed: 1, Sample: time.Second, Patience: 5 * time.Minute,
	}
	r, err := soak.Run(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	if err := r.Print(&said); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, of := range r.Sum() {
		n += of
	}
	if n != opt.Requests || len(r.Faults) > 0 {
		t.Errorf("of %d requests %d ended\n%s", opt.Requests, n, &said)
	}
	for _, c := range r.Kinds {
		if sum := c.Ends[0] + c.Ends[1] + c.Ends[2]; sum == 0 {
			t.Errorf("no %s was sent", c.Kind)
		}
	}
}
