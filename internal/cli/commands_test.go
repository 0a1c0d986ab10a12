package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/chat"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
)

// lutra runs a command line and returns what it printed.
func lutra(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := Command(&out, io.Discard)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func mustLutra(t *testing.T, args ...string) string {
	t.Helper()
	out, err := lutra(t, args...)
	if err != nil {
		t.Fatalf("lutra %q: %v", args, err)
	}
	return out
}

func TestAskAnswersWithTheEmbeddedModel(t *testing.T) {
	if got := mustLutra(t, "ask", "What is 12 * 7?"); got != "12*7=84.\nAnswer: 84\n" {
		t.Errorf("ask = %q", got)
	}
	var stats chat.Stats
	if err := json.Unmarshal([]byte(mustLutra(t, "ask", "--json", "--model", "lutra-tiny-s", "What is 12 * 7?")), &stats); err != nil {
		t.Fatal(err)
	}
	if stats.Answer != "12*7=84.\nAnswer: 84" || stats.Seconds <= 0 {
		t.Errorf("ask --json = %+v", stats)
	}
}

func TestAskSearchesForTheAnswer(t *testing.T) {
	got := mustLutra(t, "ask", "--model", "lutra-tiny-s", "--scaling", "beam_search;n=8;width=4", "--seed", "1", "What is 12 * 7?")
	if got != "12*7=84.\nAnswer: 84\n" {
		t.Errorf("ask --scaling = %q", got)
	}
	for _, bad := range []string{"magic", "beam9x4", "sc8;verifier", "sc100"} {
		_, err := lutra(t, "ask", "--scaling", bad, "What is 12 * 7?")
		var mistake usage.Error
		if !errors.As(err, &mistake) {
			t.Errorf("--scaling %q: error %v, want one of usage", bad, err)
		}
	}
	if _, err := lutra(t, "ask", "--scaling", "bon4;verifier=nobody", "What is 12 * 7?"); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("an unknown verifier: error %v", err)
	}
}

func TestInfoDescribesAModel(t *testing.T) {
	var info fileInfo
	if err := json.Unmarshal([]byte(mustLutra(t, "info", "--json", "lutra-tiny-s")), &info); err != nil {
		t.Fatal(err)
	}
	if info.Metadata["general.architecture"] != "llama" || len(info.Tensors) == 0 || info.Weights < 2e6 {
		t.Errorf("info --json = %+v", info)
	}
	text := mustLutra(t, "info", "--tensors", "lutra-tiny-s")
	if !strings.Contains(text, "token_embd.weight") || !strings.Contains(text, "TQ1_0") {
		t.Errorf("info --tensors = %s", text)
	}
	if text := mustLutra(t, "info", "../../models/testdata/golden/llama-tq2_0/model.gguf"); !strings.Contains(text, "37 (TQ2_0)") {
		t.Errorf("info = %s, which does not name the file type", text)
	}
	if text := mustLutra(t, "info", "../../models/testdata/transformers/gpt-oss.gguf"); !strings.Contains(text, "12.8 KiB are experts") {
		t.Errorf("info = %s, which does not say what experts take", text)
	}
	if strings.ContainsRune(output.Printable("a\x1b[31mb"), '\x1b') {
		t.Error("a control character of a file reaches the terminal")
	}
}

func TestWrongUsageIsToldApart(t *testing.T) {
	for _, args := range [][]string{
		{"sing"}, {"ask"}, {"serve", "--no-such-flag"},
	} {
		_, err := lutra(t, args...)
		var mistake usage.Error
		if !errors.As(err, &mistake) {
			t.Errorf("lutra %q: error %v, want one of usage", args, err)
		}
	}
	if _, err := lutra(t, "ask", "--model", "no-such-file.gguf", "hello"); err == nil || !strings.Contains(err.Error(), "lutra-tiny-l") {
		t.Errorf("a missing model: error %v, want one that lists the embedded models", err)
	}
	if _, err := lutra(t, "ask", "--model", "lutra-tiny-prm", "hello"); err == nil || !strings.Contains(err.Error(), "reward") {
		t.Errorf("asking a reward model: error %v", err)
	}
}

// scrape reads one metric.
func scrape(t *testing.T, url, series string) float64 {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		if value, ok := strings.CutPrefix(s.Text(), series+" "); ok {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("no %s", series)
	return 0
}

func TestAServerAnswersTheOtherCommandsAndDrains(t *testing.T) {
	t.Setenv("LUTRA_KERNEL_TIMES", "true")
	s := serving(t, "--addr", "127.0.0.1:0", "--model", "lutra-tiny-s")
	base := s.base
	if got := mustLutra(t, "health", "--url", base); got != "ready\n" {
		t.Errorf("health = %q", got)
	}
	if got := mustLutra(t, "ask", "--url", base+"/v1", "What is 12 * 7?"); got != "12*7=84.\nAnswer: 84\n" {
		t.Errorf("ask --url = %q", got)
	}
	// A search of 65 is more than the server allows: so it was asked for one.
	if _, err := lutra(t, "ask", "--url", base+"/v1", "--scaling", "sc65", "What is 12 * 7?"); err == nil || !strings.Contains(err.Error(), "limit of 64") {
		t.Errorf("ask --url --scaling: error %v", err)
	}
	if got := mustLutra(t, "ask", "--url", base+"/v1", "--scaling", "bon4", "What is 12 * 7?"); got != "12*7=84.\nAnswer: 84\n" {
		t.Errorf("ask --url --scaling = %q", got)
	}
	if seconds := scrape(t, base+"/metrics", `lutra_kernel_seconds_total{kernel="ternary"}`); seconds <= 0 {
		t.Errorf("ternary products took %v s", seconds)
	}
	for _, path := range []string{"/", "/web/app.js"} {
		resp, err := http.Get(base + path)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %v", path, resp, err)
		}
		resp.Body.Close()
	}
	if err := s.stop(); err != nil {
		t.Errorf("serve ended with %v", err)
	}
	if paths := s.requests("info"); len(paths) < 3 || slices.ContainsFunc(paths, func(p string) bool { return !strings.HasPrefix(p, "/v1/") }) {
		t.Errorf("requests of interest are to %q", paths)
	}
	if _, err := lutra(t, "health", "--url", base); err == nil {
		t.Error("health finds a server that has drained")
	}
}
