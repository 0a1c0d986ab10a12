package docs_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/hexagon/selftest"
	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/hub/hubtest"
	"github.com/lutra-lm/lutra/lab/npu/calibration"
	"github.com/lutra-lm/lutra/lab/npu/mixtures"
	"github.com/lutra-lm/lutra/lab/quantize"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// sandbox is a folder with the files that examples name, and a PATH on which
// lutra and lutra-lab are this test.
type sandbox struct {
	dir string
	env []string
	sub *strings.Replacer
}

// tinyModel is a GGUF file of noise with more words than examples have token ids.
func tinyModel(t *testing.T) []byte {
	return noise(t, 16384, synthetic.DefaultOptions().Blocks, gguf.Q6_K)
}

// noise is a GGUF file of that vocabulary and those types.
func noise(t *testing.T, vocab int, blocks, head gguf.Type) []byte {
	t.Helper()
	shape, err := synthetic.Named("tiny")
	if err != nil {
		t.Fatal(err)
	}
	shape.Layers, shape.Vocab = 1, vocab
	opt := synthetic.DefaultOptions()
	opt.Blocks, opt.Head = blocks, head
	var model bytes.Buffer
	if err := synthetic.Write(&model, shape, opt); err != nil {
		t.Fatal(err)
	}
	return model.Bytes()
}

// thinking is a model's file with a chat template that can switch thinking, which
// changes nothing.
func thinking(t *testing.T, f *gguf.File) []byte {
	t.Helper()
	md := maps.Clone(f.Metadata)
	written, _ := md.String("tokenizer.chat_template")
	md["tokenizer.chat_template"] = "{%- if enable_thinking is defined and enable_thinking %}{% endif -%}" + written
	var file bytes.Buffer
	if err := gguf.Write(&file, md, f.Tensors); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// tinyMixture is a GGUF file of noise with experts, and a calibration of its shape.
func tinyMixture(t *testing.T) (model, stats string) {
	t.Helper()
	shape := synthetic.Shape{Name: "mixture", Hidden: 256, FFN: 512, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 320, Context: 256,
		RopeBase: 10000, TiedEmbedding: true, Arch: synthetic.Qwen3MoE, Experts: synthetic.Experts{Count: 8, Used: 2, FFN: 256}}
	var b bytes.Buffer
	if err := synthetic.Write(&b, shape, synthetic.Options{Blocks: gguf.TQ2_0, Head: gguf.F16, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	c, err := calibration.NewCounter(experts.Shape{Model: "mixture", Layers: 2, Experts: 8, Chosen: 2, Hidden: 256, Width: 256}, mixtures.Chunks())
	if err != nil {
		t.Fatal(err)
	}
	for layer := range 2 {
		for i := range int32(600) {
			c.Add(layer, []int32{i % 7 * i % 3, 3 + i%5})
		}
	}
	if err := c.End(); err != nil {
		t.Fatal(err)
	}
	cal := must(calibration.New(experts.Shape{Model: "mixture", Layers: 2, Experts: 8, Chosen: 2, Hidden: 256, Width: 256}, []calibration.Set{c.Set("noise")}))
	return b.String(), string(must(json.Marshal(cal)))
}

// sumsOf is an importance matrix of noise.
func sumsOf(t *testing.T, model string) []byte {
	t.Helper()
	f, err := gguf.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var c quantize.Collector
	for i := range f.Tensors {
		if x := &f.Tensors[i]; len(x.Dims) == 2 {
			c.Add(x.Name, 0, 1, make([]float32, x.Cols()))
		}
	}
	meta, tensors, err := c.File("noise", 1, 512)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := gguf.Write(&out, meta, tensors); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func newSandbox(t *testing.T, base string) *sandbox {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	self, err := os.Executable()
	if err == nil {
		err = os.Mkdir(bin, 0o700)
	}
	for _, program := range []string{"lutra", "lutra-lab"} {
		if err == nil {
			err = os.Symlink(self, filepath.Join(bin, program))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range programs {
		write(filepath.Join("bin", name), "#!/bin/sh\n"+script+"\n")
	}
	model := tinyModel(t)
	for _, name := range []string{"model.gguf", "m.gguf", "falcon3-1b-tq2_0.gguf", "falcon3-1b-instruct-tq2_0.gguf"} {
		write(name, string(model))
	}
	if err := os.CopyFS(filepath.Join(dir, "Qwen3-0.6B"), os.DirFS("../../models/testdata/huggingface/qwen3")); err != nil {
		t.Fatal(err)
	}
	halves := filepath.Join(dir, "model-f16.gguf")
	write("model-f16.gguf", string(noise(t, 512, gguf.F16, gguf.F16)))
	write("imatrix.gguf", string(sumsOf(t, halves)))
	models := hubtest.New(t)
	thinks := thinking(t, must(gguf.Parse(model)))
	for _, e := range hub.Catalogue() {
		models.Put(e.Ref.ID(), e.Ref.File, thinks)
	}
	models.PutOllama("library/smollm2", "135m", hubtest.Layer{Kind: "model", Contents: thinks})
	config, err := os.ReadFile(filepath.Join(repository, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write("config.yaml", strings.Replace(string(config), "127.0.0.1:8080", "127.0.0.1:0", 1))
	mixture, stats := tinyMixture(t)
	write("mixture.gguf", mixture)
	write("stats.json", stats)
	report, err := json.Marshal(selftest.Report{Kind: selftest.Kind, Format: selftest.Format, Backend: "hexagon", Chip: true,
		Times: []selftest.Time{{Name: selftest.DMA, Of: 1 << 20, Value: 50, Unit: "GB/s"}}, Verdict: selftest.Verdict{OK: true}})
	if err != nil {
		t.Fatal(err)
	}
	write("report.json", string(report))
	write("train.txt", strings.Repeat("Otters swim in the river, and otters sleep. ", 12))
	write("test.txt", strings.Repeat("Salt comes from the sea beside the towns. ", 12))
	write("train.jsonl", `{"question": "What is 12 * 7?", "answer": 84}`+"\n")
	write("problems.jsonl", strings.Join(strings.SplitAfter(embedded.HardSet(), "\n")[:60], ""))
	trained, err := embedded.Data("lutra-tiny-s-probe")
	if err != nil {
		t.Fatal(err)
	}
	write("probe.gguf", string(trained))
	write("keys.txt", "alice: a-key-of-some-length\n")
	write("ids.txt", "1 15043 3186\n")
	write("schema.json", `{"type": "integer", "minimum": 10}`)
	write("instance.json", `84`)
	if err := os.MkdirAll(filepath.Join(dir, "maskbench", "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join("maskbench", "data", "integer.json"), `{"schema": {"type": "integer"}, "tests": [{"valid": true, "data": 7}]}`)
	write("wiki.test.raw", strings.Repeat("The river carries salt to the towns beside it. ", 12))
	write("gsm8k-test.jsonl", `{"question": "What is 12 * 7?", "answer": "12*7=84\n#### 84"}`+"\n"+`{"question": "What is 9 * 8?", "answer": "9*8=72\n#### 72"}`+"\n")
	write("math500-test.jsonl", `{"problem": "What is $12 \\cdot 7$?", "answer": "84", "level": 1}`+"\n")
	request := `{"messages": [{"role": "user", "content": "What is 9 * 8?"}], "max_tokens": 40, "receipt": true}`
	write("body.json", request)
	resp, err := http.Post(base+"/v1/chat/completions", "application/json", strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	write("answer.json", string(must(io.ReadAll(resp.Body))))
	write(".curlrc", "fail-with-body\nsilent\nshow-error\n") // an HTTP error fails the command
	return &sandbox{dir: dir, sub: substitutes(base), env: append(os.Environ(), asCommand+"=1", "HOME="+dir, "CURL_HOME="+dir, "XDG_STATE_HOME=",
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "LUTRA_SERVER_ADDR=127.0.0.1:0", "LUTRA_SERVER_LAME_DUCK=0s", "NO_PROXY=*", "no_proxy=*",
		"HF_ENDPOINT="+models.URL, "LUTRA_OLLAMA_REGISTRY="+models.URL, "HF_HOME="+filepath.Join(dir, "huggingface"), "HF_HUB_CACHE=", "HF_TOKEN=", "HF_HUB_OFFLINE=")}
}

func (s *sandbox) command(t *testing.T, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	if strings.Contains(strings.Join(args, " "), "lutra chat") {
		cmd.Stdin = strings.NewReader("What is 12 * 7?\n")
	}
	return cmd
}

// run runs a command and returns what it printed.
func (s *sandbox) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := s.command(t, name, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &errOut)
	}
	return out.String()
}

// serve runs a script whose last command is a server. When that is ready it is ended
// by SIGTERM.
func (s *sandbox) serve(t *testing.T, script string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(script), "\n")
	lines[len(lines)-1] = "exec " + lines[len(lines)-1] // the signal is for the server
	cmd := s.command(t, "sh", "-euc", strings.Join(lines, "\n"))
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ready, said := false, ""
	for in := bufio.NewScanner(log); in.Scan(); {
		said += in.Text() + "\n"
		if !ready && strings.Contains(in.Text(), "ready on ") {
			ready = true
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil || !ready {
		t.Errorf("the server ended with %v\n%s", err, said)
	}
}

var (
	serves     = regexp.MustCompile(`(^|\n)\S*(lutra|go run \.) serve\b`)
	servesLast = regexp.MustCompile(serves.String() + `[^\n|;&]*$`)
)

// TestExamplesDoWhatTheySay runs every example, of long ones the reading of command lines
// alone, and of Go the compiler's checks, unless LUTRA_EXAMPLES=all asks for more. Clients
// in other languages are skipped without their libraries, unless that forbids it.
func TestExamplesDoWhatTheySay(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a hundred commands")
	}
	clienttest.Programs(t, "sh")
	bonsai := filepath.Join(t.TempDir(), "bonsai.gguf") // an embedded model stands in for it
	if err := os.WriteFile(bonsai, thinking(t, must(embedded.Open("lutra-tiny-l"))), 0o600); err != nil {
		t.Fatal(err)
	}
	config := configFile(t, "models:\n- {embedded: lutra-tiny-l, aliases: [my-model]}\n- {embedded: lutra-tiny-s}\n- {path: "+bonsai+", name: bonsai-1.7b}\n")
	s := newSandbox(t, serving(t, "--config", config, "--jobs", t.TempDir()))
	tried := map[example]bool{} // --help and documents show some of the same
	for _, e := range allExamples(t) {
		first, _, _ := strings.Cut(e.text, "\n")
		same := e
		same.where = ""
		if notRun[first] == "" && !tried[same] {
			tried[same] = e.lang == "sh"
			t.Run(e.where+" "+first, func(t *testing.T) { s.try(t, e) })
		}
	}
}

func TestAnExampleIsSkippedWhereItsProgramIsMissing(t *testing.T) {
	t.Setenv("LUTRA_EXAMPLES", "")
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	if err := os.WriteFile(filepath.Join(bin, "sh"), []byte("#!/bin/sh\nexit 127\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &sandbox{env: os.Environ(), sub: strings.NewReplacer()}
	t.Run("skipped", func(t *testing.T) { s.try(t, example{lang: "sh", text: "lutra info m.gguf | jq ."}) })
}

func TestEveryExceptionNamesAnExample(t *testing.T) {
	list := allExamples(t)
	_, folders := repositoryFiles(t)
	sources := slices.Collect(maps.Values(folders))
	some := func(what string, is func(example) bool) {
		t.Helper()
		if !slices.ContainsFunc(list, is) {
			t.Errorf("no example is %q", what)
		}
	}
	for line, test := range long {
		some(line, func(e example) bool { return strings.HasPrefix(e.text, line) })
		if !slices.ContainsFunc(sources, func(text string) bool { return strings.Contains(text, "func "+test+"(") }) {
			t.Errorf("%q: there is no %s", line, test)
		}
	}
	for line := range notRun {
		some(line, func(e example) bool { return strings.HasPrefix(e.text, line) })
	}
	for beginning := range shownAlone {
		some(beginning, func(e example) bool { return strings.HasPrefix(e.named(), beginning) })
	}
	for _, q := range rightAnswers {
		some(q.question, func(e example) bool { return strings.Contains(e.text, q.question) })
	}
	for _, q := range otherQuestions {
		some(q, func(e example) bool { return strings.Contains(e.text, q) })
	}
}

// named is the document and what the example says.
func (e example) named() string {
	file, _, _ := strings.Cut(e.where, ":")
	return file + " " + e.text
}

// tools lists the programs that examples run besides lutra and coreutils.
var tools = regexp.MustCompile(`\b(curl|jq|taskset)\b`)

// manyProblems are more than an example needs to show that it runs.
var manyProblems = regexp.MustCompile(`--limit [0-9]{2}`)

// try runs one example and checks its output.
func (s *sandbox) try(t *testing.T, e example) {
	text := s.sub.Replace(e.text)
	if manyProblems.MatchString(text) {
		t.Error("computes for long: give its --limit a substitute")
	}
	if e.lang == "sh" {
		clienttest.Programs(t, tools.FindAllString(text, -1)...)
	}
	if !clienttest.All() && slices.ContainsFunc(sortedNames(long), func(beginning string) bool { return strings.HasPrefix(e.text, beginning) }) {
		reader := *s
		reader.env = append(slices.Clone(s.env), asCommand+"="+toRead)
		reader.run(t, "sh", "-euc", text)
		return
	}
	out := ""
	switch e.lang {
	case "sh":
		if servesLast.MatchString(e.text) {
			s.serve(t, text)
			return
		}
		if serves.MatchString(e.text) {
			t.Fatal("what follows a server in a block is never reached")
		}
		out = s.run(t, "sh", "-euc", text)
	case "python":
		out = s.python(t, text)
	case "js":
		out = s.node(t, text)
	case "go":
		if out = s.golang(t, text); !clienttest.All() {
			return
		}
	case "yaml":
		path := configFile(t, strings.ReplaceAll(e.text, "[profile.json]", "[../../models/embedded/profile.json]"))
		if _, err := config.Load(path, nil, nil); err != nil {
			t.Error(err)
		}
		return
	case "", "json":
		if !slices.ContainsFunc(sortedNames(shownAlone), func(beginning string) bool { return strings.HasPrefix(e.named(), beginning) }) {
			t.Error("this block belongs to no command: say in shownAlone what it is")
		}
		return
	default:
		t.Errorf("a block of %q: no test knows what to do with it", e.lang)
		return
	}
	checkAnswers(t, e, out)
	if e.shown != "" {
		checkShown(t, e.shown, out)
	}
}
