package npu

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
)

// Of a model that is not loaded a plan says about what a session maps.
func TestAnEstimateIsNearWhatASessionMaps(t *testing.T) {
	models := map[string]func() (*gguf.File, error){"lutra-tiny-l": func() (*gguf.File, error) { return embedded.Open("lutra-tiny-l") }}
	for _, file := range []string{"smollm2.gguf", "gemma3-270m.gguf"} {
		if path := filepath.Join(os.Getenv("LUTRA_REAL"), file); os.Getenv("LUTRA_REAL") != "" {
			models[path] = func() (*gguf.File, error) { return gguf.Open(path) }
		}
	}
	for name, open := range models {
		f, err := open()
		if err != nil {
			t.Fatal(err)
		}
		x, err := FromFile(name, f)
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPlan(x, DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := p.Print(&text); err != nil || !strings.Contains(text.String(), "estimated, within 10 % or 48") {
			t.Errorf("%s: %v, %s", name, err, text.String())
		}
		o := DefaultRequestsOptions()
		o.Model = name
		if err := p.Load(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: weights of %d bytes, a session of %d, estimated %d", name, p.Weights, p.Session, p.Estimate)
		if d := math.Abs(float64(p.Session - p.Estimate)); d > max(estimatedBytes, estimated*float64(max(p.Session, p.Estimate))) {
			t.Errorf("%s: a session of %d bytes, estimated %d", name, p.Session, p.Estimate)
		}
	}
}

// A device maps a matrix in one piece of at most 1 GiB: a larger one is the host's, in memory, time and the path.
func TestAMatrixBeyondAMappingIsTheHosts(t *testing.T) {
	plan := func(rows int) *Plan {
		x := named(t, stepModel)
		x.Matrices = append(x.Matrices[:len(x.Matrices)-1:len(x.Matrices)-1], storage{bits: 16}.matrix("output", rows, 4096, 1))
		p, err := NewPlan(x, DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	const most = 1 << 30 / 2 / 4096 // rows
	in, beyond := plan(most), plan(most+128)
	head := func(p *Plan) soc.Matrix { return p.Model.Matrices[len(p.Model.Matrices)-1] }
	if head(in).Host || !head(beyond).Host {
		t.Error("the head is on the other side")
	}
	if len(in.Matrices) != len(beyond.Matrices)+1 || in.Weights-beyond.Weights < 1<<30 || in.Estimate-beyond.Estimate != int64(in.Weights-beyond.Weights) {
		t.Errorf("%d and %d matrices, %d and %d bytes", len(in.Matrices), len(beyond.Matrices), in.Weights, beyond.Weights)
	}
	if in.Chips[0].Decode[0].Host != 0 || beyond.Chips[0].Decode[0].Host == 0 {
		t.Error("the host's time is not what the head's place says")
	}
}
