package commands

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/cli"
	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/hub/hubtest"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/lab/bench"
	"github.com/lutra-lm/lutra/lab/eval"
	"github.com/lutra-lm/lutra/lab/reference"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
)

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

func TestTheLaboratorysWrongUsageIsToldApart(t *testing.T) {
	for _, args := range [][]string{
		{"bench", "everything"}, {"bench", "engine", "--tests", "xx1"}, {"bench", "engine", "--profile", "--tests", "tg8@d9"},
		{"bench", "kernels", "--shapes", "big"}, {"logits"}, {"perplexity"}, {"perplexity", "--file", "commands_test.go", "--context", "1025"}, {"bench", "engine", "--shape", "none"},
	} {
		_, err := lutra(t, args...)
		var mistake usage.Error
		if !errors.As(err, &mistake) {
			t.Errorf("lutra-lab %q: error %v, want one of usage", args, err)
		}
	}
}

func TestBenchServeMeasuresAServerAndComparesIt(t *testing.T) {
	base := serving(t, "--addr", "127.0.0.1:0", "--model", "lutra-tiny-s").base
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
}

func TestTheLaboratorysWrongUsageNamesTheCommandAndWhatWasProbablyMeant(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"perp", `lutra-lab: unknown command "perp"; did you mean perplexity?`},
		{"bench kernel", `lutra-lab bench: unknown command "kernel"; did you mean kernels?`},
		{"bench engine --colour red", "lutra-lab bench engine: unknown flag --colour"},
		{"bench engine --packing i9", `lutra-lab bench engine: --packing: "i9" is none of auto, i1, i2, stored; did you mean i1?`},
		{"bench engine --shape falcon3-1B", `lutra-lab bench engine: --shape: "falcon3-1B" is none of tiny, falcon3-1b, falcon3-draft, bitnet-2b, bitnet-2b-4t, bonsai-1.7b, bonsai-8b, qwen35-0.8b, qwen35-0.8b-mtp, qwen35-27b, qwen35-27b-mtp, qwen3-30b-a3b, gpt-oss-20b, nemotron-nano-9b, nemotron-3-nano-30b; did you mean falcon3-1b?`},
		{"bench engine --reps many", `lutra-lab bench engine: --reps: found "many", want a whole number`},
		{"bench growth --batches 1,x", `lutra-lab bench growth: --batches: found "1,x", want whole numbers, separated by commas`},
		{"bench model --type Q9 -o x", `lutra-lab bench model: --type: there is no storage type "Q9"`},
		{"bench model --layers -1 -o x", "lutra-lab bench model: --layers is -1, want a positive number"},
		{"bench kernels --shapes big", `lutra-lab bench kernels: --shapes: "big" is not of the form MxK`},
		{"bench kernels --shapes 1000000x1000000", "lutra-lab bench kernels: --shapes: 1000000x1000000 has more than 2^30 weights"},
		{"bench kernels --kernels avx2:fast", `lutra-lab bench kernels: --kernels: "avx2:fast" is none of `},
		{"bench kernels --packings I9", `lutra-lab bench kernels: --packings: "I9" is none of F32, F16`},
		{"bench serve --timeout 30", "lutra-lab bench serve: --timeout: 30 has no unit; write 30s for seconds"},
		{"bench serve --compare a=b --beside c=1", "lutra-lab bench serve: --compare and --beside exclude each other"},
		{"bench serve --url nowhere", `lutra-lab bench serve: --url: "nowhere" is not an address such as http://127.0.0.1:8080`},
		{"eval --url nowhere", `lutra-lab eval: --url: "nowhere" is not an address`},
		{"eval --n 0", "lutra-lab eval: --n and --width: 0 is outside 1 to 4096"},
		{"eval --methods guess", `lutra-lab eval: --methods: there is no method`},
		{"perplexity --kv-type f8 --file x", `lutra-lab perplexity: --kv-type: "f8" is none of f16, int8, int4, f16/int8, f16/int4, int8/f16, int8/int4, int4/f16, int4/int8, f32`},
	} {
		status, got := complain(t, strings.Fields(c.line)...)
		command, _, _ := strings.Cut(c.want, ":")
		if status != 2 || !strings.Contains(got, c.want) || !strings.Contains(got, "Run '"+command+" --help' for usage.\n") {
			t.Errorf("lutra-lab %s: status %d\n%s\nwant 2 and %s", c.line, status, got, c.want)
		}
		if n := strings.Count(got, "\n"); n > 2 {
			t.Errorf("lutra-lab %s: %d lines of error", c.line, n)
		}
	}
}

func TestTheLaboratoryReportsAMissingServerInWords(t *testing.T) {
	for _, command := range []string{"bench serve -n 1", "eval"} {
		status, got := complain(t, append(strings.Fields(command), "--url", "http://127.0.0.1:1")...)
		if status != 1 || !strings.Contains(got, "no server answers at http://127.0.0.1:1") || strings.Count(got, "127.0.0.1:1") > 2 || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: status %d, %s", command, status, got)
		}
	}
}

func TestInstrumentsTakeServerAndKeyFromTheEnvironment(t *testing.T) {
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"data":[{"id":"m"}]}`)
	}))
	defer server.Close()
	t.Setenv("LUTRA_URL", strings.TrimPrefix(server.URL, "http://"))
	t.Setenv("LUTRA_API_KEY", "secret")
	t.Setenv("OPENAI_API_KEY", "of another")
	for _, args := range [][]string{{"bench", "serve", "-n", "1", "-c", "1"}, {"eval", "--limit", "1", "--n", "1", "--max-tokens", "4"}} {
		keys = nil
		if _, err := lutra(t, args...); len(keys) == 0 || keys[0] != "Bearer secret" { // what is answered, neither can read
			t.Errorf("%q asks with %q, %v", args, keys, err)
		}
	}
}

func TestAShellIsOfferedTheValuesOfTheLaboratorysFlags(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":[{"id":"theirs"}]}`)
	}))
	defer server.Close()
	for _, c := range []struct {
		line  string
		want  []string // among others
		files bool
	}{
		{"bench serve --url " + server.URL + " --model ", []string{"theirs", "default"}, false},
		{"bench serve --model ", []string{"default"}, false},
		{"eval --methods ", eval.Methods(), false},
		{"eval --methods single,be", []string{"single,best_of_n", "single,beam_search"}, false},
		{"eval --soc ", []string{"elite"}, false},
		{"perplexity --kv-type ", []string{"f32"}, false},
		{"bench model --shape ", []string{"falcon3-1b"}, false},
		{"help bench ", []string{"kernels"}, false},
		{"schema check ", nil, true},
		{"convert ", nil, true},
		{"quantize ", []string{"lutra-tiny-l"}, true},
	} {
		args := strings.Split(c.line, " ")
		var out bytes.Buffer
		root := Command(&out, io.Discard)
		root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, args...))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := strings.Fields(out.String())
		if files := got[len(got)-1] == ":0"; files != c.files {
			t.Errorf("%q: files are offered: %t", c.line, files)
		}
		got = got[:len(got)-1]
		for _, w := range c.want {
			if !slices.Contains(got, w) {
				t.Errorf("%q: %q are offered, and not %q", c.line, got, w)
			}
		}
		for _, w := range got {
			if !strings.HasPrefix(w, args[len(args)-1]) {
				t.Errorf("%q: %q is offered", c.line, w)
			}
		}
	}
}

func TestValuesThatTheLaboratoryOffersAreTaken(t *testing.T) {
	for _, name := range []string{"eval", "perplexity"} {
		cmd, _, err := Command(io.Discard, io.Discard).Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "model" || f.Name == "verifier" || f.Name == "draft-model" || f.Value.Type() == "bool" {
				return
			}
			offer, ok := cmd.GetFlagCompletionFunc(f.Name)
			if !ok {
				return
			}
			words, _ := offer(cmd, nil, "")
			for _, w := range words {
				if err := f.Value.Set(w); err != nil {
					t.Errorf("lutra-lab %s --%s %s: %v", name, f.Name, w, err)
				}
			}
		})
	}
}

func TestNoMessageOfTheLaboratoryNamesAPackage(t *testing.T) {
	path := configFile(t, "server: 1\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"eval", "--data", path}, ": bad data: line 1: "},
		{[]string{"bench", "model", "--shape", "tiny", "--type", "IQ1_M", "-o", "x"}, "lutra-lab bench model: "},
	} {
		status, got := complain(t, c.args...)
		if status == 0 || !strings.Contains(got, c.want) {
			t.Errorf("lutra-lab %.60q: status %d, %s, want %s", c.args, status, got, c.want)
		}
		for _, name := range []string{"eval: ", "synthetic: ", "gguf: ", "models: "} {
			if strings.Contains(strings.ReplaceAll(got, "lutra-lab "+name, ""), name) {
				t.Errorf("lutra-lab %.60q names a package: %s", c.args, got)
			}
		}
	}
}

func TestHelpOfTheLaboratoryListsEachCommandUnderAHeading(t *testing.T) {
	for _, c := range Command(io.Discard, io.Discard).Commands() {
		if name := c.Name(); c.GroupID == "" && !slices.Contains([]string{"completion", "help", "version"}, name) {
			t.Errorf("%s has no heading in lutra-lab --help", name)
		}
	}
}

// TestEveryCommandOfTheLaboratoryIsNamedWhereLutraIsAskedForIt holds the commands that lutra hides to those of
// lutra-lab: of npu, which both have, the subcommands.
func TestEveryCommandOfTheLaboratoryIsNamedWhereLutraIsAskedForIt(t *testing.T) {
	var names, moved []string
	for _, c := range Command(io.Discard, io.Discard).Commands() {
		switch {
		case slices.Contains([]string{"completion", "version"}, c.Name()): // of both
		case c.Name() == "npu":
			for _, sub := range c.Commands() {
				names = append(names, "npu "+sub.Name())
			}
		default:
			names = append(names, c.Name())
		}
	}
	var hidden func(path string, c *cobra.Command)
	hidden = func(path string, c *cobra.Command) {
		for _, sub := range c.Commands() {
			if of := strings.TrimSpace(path + " " + sub.Name()); sub.Hidden {
				moved = append(moved, of)
			} else {
				hidden(of, sub)
			}
		}
	}
	hidden("", cli.Command(io.Discard, io.Discard))
	slices.Sort(names)
	if slices.Sort(moved); !slices.Equal(moved, names) {
		t.Errorf("lutra says that %v are in lutra-lab, which has %v", moved, names)
	}
}

func TestEveryInstrumentRefusesMoreThreadsThanAMachineCanUse(t *testing.T) {
	for _, args := range [][]string{
		{"logits", "--tokens", "-", "--out", filepath.Join(t.TempDir(), "x")}, {"perplexity", "--file", "-"},
		{"bench", "engine"}, {"bench", "growth"}, {"bench", "kernels"},
	} {
		for _, n := range []string{"1000000", "-1"} {
			if _, err := lutra(t, append(args, "--threads", n)...); err == nil || !strings.Contains(err.Error(), "threads: "+n+" is outside 0..") {
				t.Errorf("%v --threads %s: error %v, want one that gives the range", args, n, err)
			}
		}
	}
}

// withHub has commands download from a hub with two models of the catalogue and one repository.
func withHub(t *testing.T) *hubtest.Hub {
	t.Helper()
	h := hubtest.New(t)
	model := tinyModel(t)
	for _, name := range []string{"bonsai-1.7b", "bitnet-2b"} {
		e, ok := hub.Lookup(name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		h.Put(e.Ref.ID(), e.Ref.File, model)
	}
	h.Put("acme/Tiny-GGUF", "Tiny-Q8_0.gguf", model)
	for key, v := range map[string]string{"HF_ENDPOINT": h.URL, "HF_HOME": t.TempDir(), "HF_HUB_CACHE": "", "HF_TOKEN": "", "HF_HUB_OFFLINE": "", "NO_PROXY": "*"} {
		t.Setenv(key, v)
	}
	return h
}

func TestNoInstrumentDownloadsOffline(t *testing.T) {
	h := withHub(t)
	t.Setenv("HF_HUB_OFFLINE", "1")
	if status, got := complain(t, "bench", "engine", "--model", "bonsai-1.7b"); status != 1 || !strings.Contains(strings.ToLower(got), "offline") {
		t.Errorf("status %d, %s", status, got)
	}
	if n := len(h.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
}

func TestEveryCommandThatRunsAModelGetsIt(t *testing.T) {
	withHub(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte(strings.Repeat("The river carries salt. ", 30)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"ask", "--model", "bonsai-1.7b", "--max-tokens", "2", "Hi"},
		{"bench", "engine", "--model", "hf:acme/Tiny-GGUF:Q8_0", "--draft-model", "bitnet-2b", "--tests", "pp8", "--reps", "1"},
		{"perplexity", "--model", "hf:acme/Tiny-GGUF", "--context", "16", "--file", filepath.Join(dir, "text")},
		{"eval", "--model", "bonsai-1.7b", "--limit", "1", "--methods", "single", "--max-tokens", "2"},
	} {
		mustLutra(t, args...)
	}
}

// whenSaid calls do as soon as text has been written.
type whenSaid struct {
	bytes.Buffer
	text string
	do   func()
}

func (w *whenSaid) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(w.String(), w.text) {
		w.do()
	}
	return n, err
}

func TestCtrlCWhileAModelLoadsEndsAnInstrument(t *testing.T) {
	path, ids := filepath.Join(t.TempDir(), "big.gguf"), filepath.Join(t.TempDir(), "ids")
	if err := errors.Join(os.WriteFile(path, tinyModel(t), 0o600), os.WriteFile(ids, []byte("1 2 3"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"eval", "--model", path, "--limit", "1", "--max-tokens", "2", "--n", "1"},
		{"bench", "engine", "--model", path, "--tests", "tg1", "--reps", "1"},
		{"perplexity", "--model", path, "--file", "commands_test.go", "--context", "64"},
		{"logits", "--model", path, "--tokens", ids, "--out", ids + ".out"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var out bytes.Buffer
		said := &whenSaid{text: "loading big (", do: cancel}
		root := Command(&out, said)
		root.SetArgs(args)
		err := root.ExecuteContext(ctx)
		if !errors.Is(err, context.Canceled) || out.Len() > 0 || strings.Count(said.String(), "\n") != 1 {
			t.Errorf("lutra-lab %q ends with %v; it printed %q and said %q", args, err, &out, said.String())
		}
	}
}

func TestPackingsWithTheSameArithmeticGiveTheSameLogits(t *testing.T) {
	tokens, out := filepath.Join(t.TempDir(), "ids"), filepath.Join(t.TempDir(), "logits")
	if err := os.WriteFile(tokens, []byte("1 2 3 4"), 0o600); err != nil {
		t.Fatal(err)
	}
	logits := func(packing string) string {
		mustLutra(t, "logits", "--model", "lutra-tiny-s", "--tokens", tokens, "--out", out, "--packing", packing)
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if logits("i1") != logits("i2") || logits("auto") == logits("stored") {
		t.Error("packings with the same arithmetic differ, or those with another one do not")
	}
	if _, err := lutra(t, "logits", "--model", "lutra-tiny-s", "--tokens", tokens, "--out", out, "--packing", "i3"); err == nil || !strings.Contains(err.Error(), `"i3" is none of auto, i1, i2, stored`) {
		t.Errorf("an unknown packing: error %v", err)
	}
}

// readingModel is a file of an encoder.
const readingModel = "../../tts/embed/testdata/bert.gguf"

func TestPerplexityRefusesAModelThatWritesNoText(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("the cat sat on the mat ", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lutra(t, "perplexity", "--model", readingModel, "--context", "64", "--file", text); err == nil || !strings.Contains(err.Error(), "writes no text") {
		t.Errorf("error %v", err)
	}
}

func TestTheStatesOfAWholeTextAreWritten(t *testing.T) {
	dir := t.TempDir()
	tokens, out := filepath.Join(dir, "tokens"), filepath.Join(dir, "out.f32")
	if err := os.WriteFile(tokens, bytes.Repeat([]byte("7 "), 200), 0o600); err != nil {
		t.Fatal(err)
	}
	mustLutra(t, "logits", "--model", readingModel, "--tokens", tokens, "--out", out)
	if info, err := os.Stat(out); err != nil || info.Size() != 200*48*4 {
		t.Errorf("%v, %v, want 200 rows of 48 numbers", info, err)
	}
}

// loud is a model that, told to think, is asked another question.
func loud(t *testing.T) string {
	t.Helper()
	f := must(embedded.Open("lutra-tiny-s"))
	written, _ := f.Metadata.String("tokenizer.chat_template")
	f.Metadata["tokenizer.chat_template"] = "{%- if enable_thinking is defined and enable_thinking -%}" +
		strings.ReplaceAll(written, "message", "messages_are_not_here") + "{%- else -%}" + written + "{%- endif -%}"
	path := filepath.Join(t.TempDir(), "loud.gguf")
	file := must(os.Create(path))
	if err := gguf.Write(file, f.Metadata, f.Tensors); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnEvaluationWithoutThinkingContinues(t *testing.T) {
	dir, model := t.TempDir(), loud(t)
	args := func(thinking string) []string {
		return []string{"eval", "--model", model, "--limit", "1", "--n", "1", "--thinking", thinking, "--out", dir}
	}
	for range 2 {
		mustLutra(t, args("off")...)
	}
	if _, err := lutra(t, args("on")...); !errors.Is(err, eval.ErrSetup) {
		t.Errorf("with thinking: %v, want ErrSetup", err)
	}
	if report := string(must(os.ReadFile(filepath.Join(dir, "results.md")))); !strings.Contains(report, "thinking off") {
		t.Errorf("the report says %s", report)
	}
}

func TestAnEvaluationOfAModelThatCannotSwitchThinkingSaysSo(t *testing.T) {
	if _, err := lutra(t, "eval", "--limit", "1", "--n", "1", "--thinking", "on"); err == nil || !strings.Contains(err.Error(), "cannot switch thinking") {
		t.Errorf("error %v", err)
	}
}
