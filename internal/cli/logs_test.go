package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAServersLogIsShownToItsAdmin(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("alice: a\nops: o admin\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serving(t, "--addr", "127.0.0.1:0", "--model", "lutra-tiny-s", "--api-keys-file", keys)
	against(t, "", "ask", "--url", s.base, "--api-key", "a", "What is 9 * 8?")
	out := against(t, "", "logs", "--url", s.base, "--api-key", "o")
	if !strings.Contains(out, `"message":"model loaded"`) || !strings.Contains(out, `"key":"alice"`) || strings.Contains(out, "9 * 8") {
		t.Errorf("logs prints\n%s", out)
	}
	if out := against(t, "", "logs", "-n", "1", "--url", s.base, "--api-key", "o"); strings.Count(out, "\n") != 1 {
		t.Errorf("logs -n 1 prints\n%s", out)
	}
	if status, got := complain(t, "logs", "--url", s.base, "--api-key", "a"); status != 1 || !strings.Contains(got, "This takes an admin key") {
		t.Errorf("without the right: status %d, %s", status, got)
	}
	if status, got := complain(t, "logs", "-n", "-1", "--url", s.base); status != 2 || !strings.Contains(got, "--tail: -1 is negative") {
		t.Errorf("status %d, %s", status, got)
	}
	ctx, stop := context.WithCancel(t.Context())
	n := &whenSaid{text: "model loaded", do: stop}
	cmd := Command(n, &bytes.Buffer{})
	cmd.SetArgs([]string{"logs", "--follow", "--url", s.base, "--api-key", "o"})
	if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a log that is followed ends with %v", err)
	}
}
