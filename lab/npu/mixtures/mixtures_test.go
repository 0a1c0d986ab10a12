package mixtures

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/lab/npu"
	"github.com/lutra-lm/lutra/lab/npu/calibration"
	"github.com/lutra-lm/lutra/lab/npu/planning"
	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/lab/reference"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// small is a mixture whose steps take no time.
var small = synthetic.Shape{Name: "small mixture", Hidden: 256, FFN: 512, Layers: 3, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 320, Context: 128,
	RopeBase: 10000, TiedEmbedding: true, Arch: synthetic.Qwen3MoE, Experts: synthetic.Experts{Count: 12, Used: 3, FFN: 256}}

// file writes text to a file of that name.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// model writes a model of random weights.
func model(t *testing.T, shape synthetic.Shape) string {
	t.Helper()
	var b bytes.Buffer
	if err := synthetic.Write(&b, shape, synthetic.Options{Blocks: gguf.TQ2_0, Head: gguf.F16, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	return file(t, "small.gguf", b.String())
}

func calibrating(model string, data ...string) Calibrating {
	return Calibrating{Options: reference.Options{Model: model, Packing: "auto", Context: 4096, Threads: 2}, Data: data, Chunks: []int{16, 64}}
}

func TestACalibrationCountsEveryTokenOfEveryPrompt(t *testing.T) {
	text := file(t, "text.txt", strings.Repeat("The otter dives, the otter eats. ", 12))
	questions := file(t, "questions.jsonl", `{"question": "How many otters are there?", "answer": 3}
{"question": "And fish?", "answer": 4}`)
	c := calibrating(model(t, small), text, questions)
	var seen []string
	cal, err := Calibrate(t.Context(), c, func(set string, done, of int) { seen = append(seen, fmt.Sprintf("%s %d/%d", set, done, of)) })
	if err != nil {
		t.Fatal(err)
	}
	want := experts.Shape{Model: "small", Layers: 3, Experts: 12, Chosen: 3, Hidden: 256, Width: 256}
	if cal.Shape != want || len(cal.Sets) != 2 || cal.Sets[0].Name != "text.txt" || cal.Sets[1].Prompts != 2 || len(cal.Overlaps) != 2 {
		t.Errorf("a calibration of %+v, %d sets, %d overlaps", cal.Shape, len(cal.Sets), len(cal.Overlaps))
	}
	if tokens, longest := cal.Sets[0].Tokens, int64(small.Context); int64(cal.Sets[0].Prompts) != (tokens+longest-1)/longest || tokens < 2*longest {
		t.Errorf("a text of %d tokens is %d prompts of at most %d", tokens, cal.Sets[0].Prompts, longest)
	}
	if !slices.Contains(seen, "questions.jsonl 2/2") {
		t.Errorf("progress was %v", seen)
	}
	if cal.Sets[0].Chunks[1].Count < int(cal.Sets[0].Tokens+63)/64 {
		t.Errorf("%d tokens are %d chunks of 64", cal.Sets[0].Tokens, cal.Sets[0].Chunks[1].Count)
	}
	again, err := Calibrate(t.Context(), c, nil)
	if err != nil || !slices.Equal(again.Sets[0].Layers[2].Tokens, cal.Sets[0].Layers[2].Tokens) {
		t.Errorf("the same again: %v", err)
	}
	c.Limit = 1
	if cal, err = Calibrate(t.Context(), c, nil); err != nil || cal.Sets[0].Prompts != 1 || cal.Sets[1].Prompts != 1 || cal.Sets[0].Tokens != int64(small.Context) {
		t.Errorf("with a limit of one prompt: %v, %+v", err, cal)
	}
}

func TestWhatCannotBeCalibratedIsRefused(t *testing.T) {
	text := file(t, "text.txt", "some text")
	dense := small
	dense.Arch, dense.Experts = synthetic.Llama, synthetic.Experts{}
	mixture, partly := model(t, small), small
	partly.Arch, partly.Experts.Dense = synthetic.LFM2MoE, 1
	for want, c := range map[string]Calibrating{
		"has no mixtures of experts": calibrating(model(t, dense), text),
		"the first 1 layers":         calibrating(model(t, partly), text),
		"holds no tokens":            calibrating(mixture, file(t, "empty.txt", "")),
		"line 1":                     calibrating(mixture, file(t, "bad.jsonl", "{")),
		"no such file":               calibrating(mixture, filepath.Join(t.TempDir(), "none.txt")),
	} {
		if _, err := Calibrate(t.Context(), c, nil); err == nil || !strings.Contains(err.Error(), want) && !(want == "no such file" && errors.Is(err, os.ErrNotExist)) {
			t.Errorf("Calibrate = %v, want %q", err, want)
		}
	}
	for want, change := range map[string]func(c *Calibrating){
		"--data FILE":         func(c *Calibrating) { c.Data = nil },
		"--limit":             func(c *Calibrating) { c.Limit = -1 },
		"chunks of [0]":       func(c *Calibrating) { c.Chunks = []int{0} },
		"chunks of []":        func(c *Calibrating) { c.Chunks = nil },
		"chunks of [9999999]": func(c *Calibrating) { c.Chunks = []int{9999999} },
	} {
		c := calibrating(mixture, text)
		change(&c)
		var mistake usage.Error
		if _, err := Calibrate(t.Context(), c, nil); !errors.As(err, &mistake) || !strings.Contains(err.Error(), want) {
			t.Errorf("Calibrate = %v, want a mistake of usage that says %q", err, want)
		}
	}
}

func TestARouterThatMakesNoNumbersIsFound(t *testing.T) {
	counter, err := calibration.NewCounter(experts.Shape{Layers: 1, Experts: 2, Chosen: 1, Hidden: 1, Width: 1}, []int{4})
	if err != nil {
		t.Fatal(err)
	}
	w := watcher{counter: counter}
	w.see(0, []int32{1}, []float32{0.5})
	if w.err != nil {
		t.Fatal(w.err)
	}
	w.see(0, []int32{1}, []float32{float32(math.NaN())})
	if w.err == nil || !strings.Contains(w.err.Error(), "layer 0") {
		t.Errorf("a weight that is no number gives %v", w.err)
	}
}

// calibrated is the calibration of the small mixture, with its file.
func calibrated(t *testing.T) (cal *calibration.Calibration, path string) {
	t.Helper()
	path = model(t, small)
	cal, err := Calibrate(t.Context(), calibrating(path, file(t, "a.txt", strings.Repeat("Otters swim in the river. ", 40)), file(t, "b.txt", strings.Repeat("Rain falls on us. ", 40))), nil)
	if err != nil {
		t.Fatal(err)
	}
	return cal, path
}

func TestACalibrationIsDrawn(t *testing.T) {
	cal, _ := calibrated(t)
	var svg bytes.Buffer
	if err := SVG(&svg, cal); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a.txt", "b.txt", "imbalance", "expert", "layer"} {
		if !strings.Contains(svg.String(), want) {
			t.Errorf("the drawing does not say %q", want)
		}
	}
	for d := xml.NewDecoder(&svg); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the SVG: %v", err)
		}
	}
}

func TestAFilesMixtureIsPlannedByItsCalibration(t *testing.T) {
	cal, path := calibrated(t)
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := npu.FileMixture("small", f)
	if err != nil {
		t.Fatal(err)
	}
	if m.Shape != cal.Shape || m.Dense.Experts != 12 || slices.ContainsFunc(m.Dense.Matrices, func(x soc.Matrix) bool { return strings.Contains(x.Name, "exps") }) {
		t.Errorf("the file's mixture is %+v, the calibration's %+v", m.Shape, cal.Shape)
	}
	o := DefaultPlanning()
	o.Launch = 1e-3 // else nothing of so small a model pays
	p, err := NewPlan(m, cal, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Others) != 2*3*6 || p.Bytes == 0 || p.Choice.Overflow > planning.MostOverflow || len(p.Checks) != 1 {
		t.Errorf("of %d plans one with %d bytes and %+v", len(p.Others), p.Bytes, p.Choice)
	}
	var text bytes.Buffer
	if err := errors.Join(PrintCalibration(&text, cal), PrintPlan(&text, p)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"imbalance r", "3 layers of 12 experts", "on the front", "b.txt", "C_base", "hot:", "chosen", "modelled"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("what is printed does not say %q:\n%s", want, text.String())
		}
	}
	o.Chunk, o.GroupSize, o.Capacity = 64, 4, 32
	if p, err = NewPlan(m, cal, o); err != nil || len(p.Others) != 1 || p.Chunk != 64 || p.GroupSize != 4 || p.Layers[0].Groups[0].Capacity != 32 {
		t.Errorf("a plan as asked for: %v, %+v", err, p)
	}
	if o.Headroom = 2; err == nil {
		_, err = NewPlan(m, cal, o)
	}
	if !errors.Is(err, experts.ErrOptions) {
		t.Errorf("a capacity and headroom: %v", err)
	}
	if p, err = NewPlan(m, nil, DefaultPlanning()); err != nil || !strings.Contains(p.Why, "no calibration") || p.Bytes != 3*12*m.ExpertBytes(p.Device)[0] {
		t.Errorf("without a calibration: %v", err)
	}
}

func TestThePapersModelsAreTheirSize(t *testing.T) {
	ultra, err := planning.NamedDevice("m2-ultra")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		experts float64 // bytes of all weights in fp16 (NPUMoE, §5.1, Table 1)
		one     float64 // MB of an expert
	}{{"phi-3.5-moe", 83.75e9, 150}, {"phi-tiny-moe", 7.51e9, 0}, {"qwen3-30b-a3b", 61e9, 0}} {
		m, ok := npu.ShapeMixture(c.name)
		if !ok {
			t.Fatalf("no shape %s", c.name)
		}
		list := m.ExpertBytes(ultra)
		total := float64(list[0]) * float64(m.Shape.Experts*m.Shape.Layers)
		if total > c.experts || total < 0.7*c.experts || c.one > 0 && float64(list[0])/(1<<20) != c.one {
			t.Errorf("%s: experts of %d bytes, %.1f GB in all", c.name, list[0], total/1e9)
		}
		p, err := NewPlan(m, nil, Planning{Device: "m2-ultra", GroupSize: 16})
		if err != nil {
			t.Fatal(err)
		}
		if groups := len(p.Layers[0].Groups); c.one > 0 && groups != 2 { // of 16 experts in a graph the paper says that it falls back
			t.Errorf("%s has %d groups a layer, want 2", c.name, groups)
		}
	}
}
