package cli

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/server"
)

// python is an interpreter that can import a module, LUTRA_PYTHON or python3;
// the test is skipped where there is none.
func python(t *testing.T, module string) string {
	t.Helper()
	name := os.Getenv("LUTRA_PYTHON")
	if name == "" {
		name = "python3"
	}
	if err := exec.Command(name, "-c", "import "+module).Run(); err != nil {
		t.Skipf("%s cannot import %s: %v", name, module, err)
	}
	return name
}

// serveModel serves an embedded model until the test ends and returns the URL.
func serveModel(t *testing.T, name string) string {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Models = []ModelConfig{{Embedded: name}}
	r, err := newRuntime(cfg, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(cfg.Server)
	if err := srv.Publish(r.served()...); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	live := httptest.NewServer(srv.Handler())
	t.Cleanup(func() {
		live.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		r.Close()
	})
	return live.URL
}

func TestLMEvalScoresAreThoseOfTheLogits(t *testing.T) {
	interpreter := python(t, "lm_eval")
	binary := filepath.Join(t.TempDir(), "lutra")
	if out, err := exec.Command("go", "build", "-o", binary, "../..").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	script := filepath.Join("..", "..", "tools", "lmeval", "compare.py")
	url := serveModel(t, embedded.Default)
	out, err := exec.CommandContext(t.Context(), interpreter, script, "--url", url, "--lutra", binary, "--model", embedded.Default).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "scores, each asked for in 3 ways") {
		t.Errorf("compare.py: %v\n%s", err, out)
	}
}
