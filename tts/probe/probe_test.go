package probe

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/tts"
)

// planted returns a probe of a model of 4 layers of 3 numbers.
func planted() *Probe {
	line := func(f float32) Line {
		return Line{Mean: []float32{f, 0, 0, 0, f, 0}, Last: []float32{0, f, 0, 0, 0, -f}, Tokens: []float32{f, 0, 0.5, 0}, Bias: f / 4}
	}
	return &Probe{Name: "p", Of: Of{Name: "M", Arch: "llama", Layers: 4, Hidden: 3, SHA256: "ab"}, Layers: []int{1, 3},
		Whole: line(1), Step: line(-2), Record: Record{Problems: 10, Answers: 40, AUC: 0.75}}
}

// file writes a probe, with its metadata and tensors changed.
func file(t *testing.T, p *Probe, change func(gguf.Metadata, map[string]*gguf.Tensor)) *gguf.File {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if change == nil {
		return f
	}
	byName := map[string]*gguf.Tensor{}
	for i := range f.Tensors {
		byName[f.Tensors[i].Name] = &f.Tensors[i]
	}
	change(f.Metadata, byName)
	var tensors []gguf.Tensor
	for i := range f.Tensors {
		if f.Tensors[i].Name != "" {
			tensors = append(tensors, f.Tensors[i])
		}
	}
	b = bytes.Buffer{}
	if err := gguf.Write(&b, f.Metadata, tensors); err != nil {
		t.Fatal(err)
	}
	if f, err = gguf.Parse(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAProbeIsReadAsItWasWritten(t *testing.T) {
	p := planted()
	got, err := Parse(file(t, p, nil))
	if err == nil && len(got.Digest()) != 64 {
		t.Errorf("its digest is %q", got.Digest())
	}
	if got != nil {
		got.digest = ""
	}
	if err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("Parse = %+v, %v, want %+v", got, err, p)
	}
}

func TestAFileThatIsNoUsableProbeIsRefused(t *testing.T) {
	for want, change := range map[string]func(gguf.Metadata, map[string]*gguf.Tensor){
		"general.architecture":            func(m gguf.Metadata, _ map[string]*gguf.Tensor) { m["general.architecture"] = "llama" },
		keyModel:                          func(m gguf.Metadata, _ map[string]*gguf.Tensor) { delete(m, keyModel) },
		keyArch:                           func(m gguf.Metadata, _ map[string]*gguf.Tensor) { m[keyArch] = strings.Repeat("x", 2000) },
		keyLayers:                         func(m gguf.Metadata, _ map[string]*gguf.Tensor) { m[keyLayers] = uint32(1 << 30) },
		keyHidden:                         func(m gguf.Metadata, _ map[string]*gguf.Tensor) { m[keyHidden] = int32(-3) },
		keyRead + " names no":             func(m gguf.Metadata, _ map[string]*gguf.Tensor) { m[keyRead] = []uint32{} },
		keyRead + "[1] is 4":              func(m gguf.Metadata, _ map[string]*gguf.Tensor) { m[keyRead] = []uint32{1, 4} },
		keyRead + "[1] is 1":              func(m gguf.Metadata, _ map[string]*gguf.Tensor) { m[keyRead] = []uint32{1, 1} },
		keyTokens:                         func(m gguf.Metadata, _ map[string]*gguf.Tensor) { m[keyTokens] = []string{"mood"} },
		"tensor whole.mean has 6 numbers": func(m gguf.Metadata, _ map[string]*gguf.Tensor) { m[keyHidden] = uint32(300) },
		"tensor step.bias is missing":     func(_ gguf.Metadata, x map[string]*gguf.Tensor) { x["step.bias"].Name = "" },
		"tensor step.mean: number 0 is": func(_ gguf.Metadata, x map[string]*gguf.Tensor) {
			*x["step.mean"] = floats("step.mean", []int{3, 2}, []float32{float32(math.NaN()), 0, 0, 0, 0, 0})
		},
		"tensor step.last: number 5 is": func(_ gguf.Metadata, x map[string]*gguf.Tensor) {
			*x["step.last"] = floats("step.last", []int{3, 2}, []float32{0, 0, 0, 0, 0, 1e13})
		},
	} {
		p, err := Parse(file(t, planted(), change))
		if p != nil || !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Parse = %v, %v", want, p, err)
		}
	}
}

func TestAProbeFitsTheModelThatItNames(t *testing.T) {
	c := models.Config{Name: "M", Arch: "llama", Layers: 4, Hidden: 3}
	of := planted().Of
	if err := of.Fits(&c); err != nil {
		t.Error(err)
	}
	for _, change := range []func(){func() { c.Name = "N" }, func() { c.Arch = "qwen2" }, func() { c.Layers = 5 }, func() { c.Hidden = 4 }} {
		was := c
		change()
		if err := of.Fits(&c); err == nil || !strings.Contains(err.Error(), `"M" (llama, 4 layers of 3)`) {
			t.Errorf("%+v: %v", c, err)
		}
		c = was
	}
}

// What engines read for two probes and their scorers make of it are the lines through the features.
func TestScoresAreTheLinesThroughTheFeatures(t *testing.T) {
	other := planted()
	other.Layers, other.Whole.Bias, other.Step.Mean = []int{0, 1}, 3, []float32{0, 0, 1, 1, 0, 0}
	probes := []*Probe{planted(), other}
	read, scorers := Read(probes), Scorers(probes)
	if want := []int{0, 1, 3}; !reflect.DeepEqual(read.Layers, want) || read.Channels != 2*channels {
		t.Fatalf("layers %v and %d channels are read, want %v and %d", read.Layers, read.Channels, want, 2*channels)
	}
	states := [][]float32{ // of two tokens, behind each of the four layers
		{1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3},
		{0.5, 0, 1, -2, 1, 0.25, 3, 3, 3, 1, 0, 2},
	}
	logprobs := []float32{-0.25, -1.5}
	c := &tts.Candidate{}
	for i, x := range states {
		tok := token(read, x, logprobs[i])
		c.Readings.Add(&tok)
	}
	for i, p := range probes {
		whole := tts.Readings{}
		for i, x := range states {
			var of []float32
			for _, l := range p.Layers {
				of = append(of, x[3*l:3*l+3]...)
			}
			tok := token(nil, of, logprobs[i])
			whole.Add(&tok)
		}
		features := Features(nil, &whole)
		for _, finish := range []tts.Finish{"", tts.FinishStop} {
			line := &p.Step
			if finish != "" {
				line = &p.Whole
			}
			x := float64(line.Bias)
			for k, w := range append(append(append([]float32{}, line.Mean...), line.Last...), line.Tokens...) {
				x += float64(w) * float64(features[k])
			}
			judge, err := scorers[i].Open(t.Context(), nil, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			c.Finish, c.StepScores = finish, nil
			if err := judge.Score(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if got, want := float64(c.StepScores[0]), 1/(1+math.Exp(-x)); math.Abs(got-want) > 1e-6 {
				t.Errorf("probe %d, finish %q: score %v, want %v", i, finish, got, want)
			}
		}
	}
}

// token returns a token of which p has read the states x; nil: which are its reading.
func token(p *models.Probe, x []float32, logprob float32) sampling.Token {
	tok := sampling.Token{Logprob: logprob, Certainty: -2 * logprob, Reading: x}
	if p == nil {
		return tok
	}
	tok.Reading = make([]float32, p.Channels)
	for at, l := range p.Layers {
		for i := range tok.Reading {
			for k, v := range x[3*l : 3*l+3] {
				tok.Reading[i] += v * p.Weights[at][3*i+k]
			}
		}
	}
	return tok
}
