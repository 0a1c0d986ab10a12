package cli

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/bench"
	"github.com/lutra-lm/lutra/internal/chat"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/reference"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
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

func TestLogitsAreWrittenForEveryToken(t *testing.T) {
	dir := t.TempDir()
	tokens := filepath.Join(dir, "ids")
	if err := os.WriteFile(tokens, []byte("[1022, 286, 10]\n258 273 111"), 0o600); err != nil {
		t.Fatal(err)
	}
	raw, npy := filepath.Join(dir, "out.f32"), filepath.Join(dir, "out.npy")
	mustLutra(t, "logits", "--model", "lutra-tiny-s", "--tokens", tokens, "--out", raw)
	mustLutra(t, "logits", "--model", "lutra-tiny-s", "--tokens", tokens, "--out", npy)
	data, err := os.ReadFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	if want := 6 * 1024 * 4; len(data) != want {
		t.Fatalf("%d bytes, want %d", len(data), want)
	}
	array, err := os.ReadFile(npy)
	if err != nil {
		t.Fatal(err)
	}
	if n := int(binary.LittleEndian.Uint16(array[8:])); (10+n)%64 != 0 || !bytes.Equal(array[10+n:], data) || !bytes.Contains(array[:10+n], []byte("(6, 1024)")) {
		t.Errorf("the NumPy file's header is %q", array[:10+n])
	}
	for _, bad := range []string{"1 2 x", "1024", "-1", ""} {
		if err := os.WriteFile(tokens, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := lutra(t, "logits", "--model", "lutra-tiny-s", "--tokens", tokens, "--out", raw); err == nil {
			t.Errorf("token list %q was taken", bad)
		}
	}
}

func TestLogitsThatAreNotFiniteAreSaidAndFail(t *testing.T) {
	dir := t.TempDir()
	f, err := gguf.Open("../../models/testdata/golden/llama3-rope-tied/model.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	norm := f.Tensor("output_norm.weight")
	norm.Data = bytes.Repeat(binary.LittleEndian.AppendUint32(nil, math.Float32bits(3e38)), norm.Len())
	var b bytes.Buffer
	if err := gguf.Write(&b, f.Metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	model, tokens := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "ids")
	if err := errors.Join(os.WriteFile(model, b.Bytes(), 0o600), os.WriteFile(tokens, []byte("1 2 3"), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err = lutra(t, "logits", "--model", model, "--tokens", tokens, "--out", filepath.Join(dir, "out.npy"))
	if !errors.Is(err, models.ErrNotFinite) || !strings.Contains(err.Error(), "token 0") {
		t.Errorf("logits that are infinite: %v, want ErrNotFinite and the token", err)
	}
}

func TestPerplexityPrefersTextTheModelKnows(t *testing.T) {
	measure := func(text string) float64 {
		path := filepath.Join(t.TempDir(), "text")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var r reference.Report
		if err := json.Unmarshal([]byte(mustLutra(t, "perplexity", "--json", "--file", path, "--context", "64")), &r); err != nil {
			t.Fatal(err)
		}
		if r.Tokens == 0 || math.IsNaN(r.Perplexity) {
			t.Fatalf("perplexity = %+v", r)
		}
		return r.Perplexity
	}
	known := measure(strings.Repeat("Now she has 12+36=48.\nNow she has 48+2=50.\n", 8))
	noise := measure(strings.Repeat("zq#kf vv?%j xow;;p [[ub 8&&l ", 12))
	if known*2 > noise {
		t.Errorf("perplexity of a solution is %.1f, of noise %.1f", known, noise)
	}
}

func TestWrongUsageIsToldApart(t *testing.T) {
	for _, args := range [][]string{
		{"sing"}, {"ask"}, {"serve", "--no-such-flag"}, {"bench", "everything"}, {"bench", "engine", "--tests", "xx1"}, {"bench", "engine", "--profile", "--tests", "tg8@d9"},
		{"bench", "kernels", "--shapes", "big"}, {"logits"}, {"perplexity"}, {"perplexity", "--file", "commands_test.go", "--context", "1025"}, {"bench", "engine", "--shape", "none"},
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
	var report bench.LoadReport
	out := mustLutra(t, "bench", "serve", "--json", "--url", base+"/v1", "-n", "6", "-c", "3", "--max-tokens", "8", "--prompt-words", "10")
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if report.Errors != 0 || report.Requests != 6 || report.CompletionTokens == 0 || report.PromptTokens == 0 || report.TTFT.P50 <= 0 {
		t.Errorf("bench serve = %+v", report)
	}
	var compared bench.CompareReport
	out = mustLutra(t, "bench", "serve", "--json", "--url", base+"/v1", "-n", "2", "-c", "2", "--max-tokens", "4", "--prompt-words", "5", "--compare", "itself="+base+"/v1", "--rounds", "2")
	if err := json.Unmarshal([]byte(out), &compared); err != nil {
		t.Fatal(err)
	}
	if len(compared.Comparisons) < 4 || compared.Comparisons[0].Test != "completion tok/s" || compared.Comparisons[0].Ratio.Min <= 0 || compared.Commands["itself"] != base+"/v1" {
		t.Errorf("bench serve --compare = %+v", compared)
	}
	var beside bench.BesideReport
	out = mustLutra(t, "bench", "serve", "--json", "--url", base+"/v1", "-c", "2", "--max-tokens", "8", "--prompt-words", "5", "--phase", "100ms", "--rounds", "1", "--beside", "model=lutra-tiny-s+bon8,n=2")
	if err := json.Unmarshal([]byte(out), &beside); err != nil {
		t.Fatal(err)
	}
	// A machine that is busy may begin nothing within a phase.
	measured := slices.ContainsFunc(beside.Phases, func(p bench.PhaseReport) bool { return p.Begun > 0 && p.TTFT.P50 > 0 })
	if len(beside.Phases) != 3 || beside.Completed != 2 || beside.Errors != 0 || !measured {
		t.Errorf("bench serve --beside = %+v", beside)
	}
	if _, err := lutra(t, "bench", "serve", "--url", base+"/v1", "-n", "1", "--compare", "gone=http://127.0.0.1:1/v1"); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a server that is not there: error %v", err)
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
	if paths := s.requests("info"); len(paths) < 10 || slices.ContainsFunc(paths, func(p string) bool { return !strings.HasPrefix(p, "/v1/") }) {
		t.Errorf("requests of interest are to %q", paths)
	}
	if _, err := lutra(t, "health", "--url", base); err == nil {
		t.Error("health finds a server that has drained")
	}
}
