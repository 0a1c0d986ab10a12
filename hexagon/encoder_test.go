package hexagon

import (
	"bytes"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
)

// wideEncoder is a reference encoder of tts/embed twice as wide, so that the device has its layers,
// with random matrices of that type; it sees a window of that many tokens where it sees one.
func wideEncoder(t *testing.T, arch string, kind gguf.Type, window int) func() (*gguf.File, error) {
	t.Helper()
	f, err := gguf.Open(filepath.Join("../tts/embed/testdata/reference", arch+".gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := rand.New(rand.NewPCG(51, uint64(len(arch))))
	arch, _ = f.Metadata.String("general.architecture")
	for _, key := range []string{"embedding_length", "feed_forward_length", "attention.key_length", "attention.value_length"} {
		if n, ok := f.Metadata[arch+"."+key].(uint32); ok {
			f.Metadata[arch+"."+key] = 2 * n
		}
	}
	if _, ok := f.Metadata[arch+".attention.sliding_window"]; ok {
		f.Metadata[arch+".attention.sliding_window"] = uint32(window)
	}
	var tensors []gguf.Tensor
	for _, old := range f.Tensors {
		n := gguf.Tensor{Name: old.Name, Type: gguf.F32, Dims: slices.Clone(old.Dims)}
		n.Dims[0] *= 2
		embeds := strings.HasPrefix(n.Name, "token_embd.") || strings.HasPrefix(n.Name, "position_") || strings.HasPrefix(n.Name, "token_types") || strings.HasPrefix(n.Name, "cls.output")
		if len(n.Dims) > 1 {
			if n.Type = kind; !embeds {
				n.Dims[1] *= 2
			}
		} else if strings.HasPrefix(n.Name, "cls.output") {
			n.Dims[0] /= 2
		}
		rows := 1
		if len(n.Dims) > 1 {
			rows = n.Dims[1]
		}
		x := gaussians(r, n.Dims[0]*rows)
		for i := range x {
			switch {
			case len(n.Dims) > 1:
				x[i] /= float32(math.Sqrt(float64(n.Dims[0])))
			case strings.HasSuffix(n.Name, "bias"):
				x[i] /= 4
			default:
				x[i] = 1 + x[i]/8
			}
		}
		size, err := n.Type.Size(n.Dims)
		if err != nil {
			t.Fatal(err)
		}
		if n.Data = make([]byte, size); gguf.Quantize(n.Type, n.Data, x) != nil {
			t.Fatal(n.Name)
		}
		tensors = append(tensors, n)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, f.Metadata, tensors); err != nil {
		t.Fatal(err)
	}
	return func() (*gguf.File, error) { return gguf.Parse(b.Bytes()) }
}

// Norms behind half layers, ahead of them and both, of heads too, biases, GELU gated and alone, SwiGLU, windows on both
// sides; of a text for which a chunk of keys is too short, of one of more rows than the tile unit has at once, and by
// lookups.
func TestAnEncodersLayersAreOneRequest(t *testing.T) {
	p := newPool(t)
	for _, c := range []struct {
		arch    string
		kind    gguf.Type
		path    Path
		tokens  []int
		fromCPU float64
	}{
		{"modern-bert", gguf.F16, PathAuto, []int{75, 290}, deviceNoise},
		{"bert", gguf.F16, PathAuto, []int{75, 290}, deviceNoise},
		{"nomic-bert", gguf.Q8_0, PathLookup, []int{75}, cpuNoise},
		{"gemma-embedding", gguf.F16, PathAuto, []int{75}, deviceNoise},
	} {
		arch, load := c.arch, wideEncoder(t, c.arch, c.kind, 24)
		for _, n := range c.tokens[:sweep.Cases(1, len(c.tokens))] {
			tokens := make([]int32, n)
			for i := range tokens {
				tokens[i] = int32(5 + i*i%100)
			}
			var hidden [3][]float32
			for i, kind := range []string{"hexagon-go", "hexagon-go", ""} {
				b := onDevice(t, kind, Options{Path: c.path}, p, load)
				if kind == "" {
					hidden[i] = newFeeder(t, b.Model).feed(n, tokens...)
					continue
				}
				d := backendOf(t, b)
				if d.attention.tcm.longest = 32; i == 1 {
					d.plan.layers = nil
				}
				before := d.Work()
				hidden[i] = slices.Clone(newFeeder(t, b.Model).feed(n, tokens...))
				after, cfg := d.Work(), b.Model.Config()
				if runs, attended := after.Runs-before.Runs, after.Queries-before.Queries; (runs == 1) != (i == 0) || attended != int64(cfg.Layers*cfg.Heads*n) {
					t.Errorf("%s, %d tokens: %d requests, %d queries", arch, n, runs, attended)
				} else {
					t.Logf("%s, %d tokens: %d requests, %d packets, %d bytes", arch, n, runs, after.Packets-before.Packets, after.Written+after.Read-before.Written-before.Read)
				}
			}
			if e := nmse(hidden[0], hidden[1]); !(e <= deviceNoise) {
				t.Errorf("%s, %d tokens: NMSE between whole layers and single products is %.3g", arch, n, e)
			}
			for i := range 2 {
				if e := nmse(hidden[i], hidden[2]); !(e <= c.fromCPU) {
					t.Errorf("%s, %d tokens: NMSE against the CPU is %.3g", arch, n, e)
				}
			}
		}
	}
}

// On one path a text has the same bits alone and among others, whole layers or not, and in steps that take
// several requests.
func TestATextDoesNotDependOnOthersInItsStep(t *testing.T) {
	sweep.Full(t)
	b := onDevice(t, "hexagon-go", Options{Path: PathTiles}, newPool(t), wideEncoder(t, "modern-bert", gguf.F16, 24))
	d := backendOf(t, b)
	d.attention.tcm.longest = 64
	for _, whole := range []bool{true, false} {
		if !whole {
			d.plan.layers = nil
		}
		texts := [][]int32{someText(70), someText(3), someText(33), someText(100)}
		var alone [][]float32
		for _, text := range texts {
			alone = append(alone, slices.Clone(newFeeder(t, b.Model).feed(len(text), text...)))
		}
		f := newFeeder(t, b.Model)
		f.batch.Reset()
		for _, text := range texts {
			s := f.cache.Open(nil)
			if err := s.Grow(len(text)); err != nil {
				t.Fatal(err)
			}
			f.batch.Add(s, 0, len(text), text...)
		}
		for _, rows := range []int{encoderRows, 110} {
			runs := d.Work().Runs
			if whole {
				d.plan.layers.tiledRows = rows
			}
			if err := b.Model.Forward(&f.batch, f.cache); err != nil {
				t.Fatal(err)
			}
			if n := d.Work().Runs - runs; whole && n != int64(map[int]int{encoderRows: 1, 110: 2}[rows]) {
				t.Errorf("%d rows at once: %d requests", rows, n)
			}
			if !slices.Equal(f.batch.Logits, slices.Concat(alone...)) {
				t.Errorf("whole %t, %d rows at once: hidden states are others in a crowd", whole, rows)
			}
		}
	}
}

// Sequences too long for a request, and pieces of one, are the host's.
func TestSequencesThatAreNotRecordedWholeAreTheHosts(t *testing.T) {
	b := onDevice(t, "hexagon-go", Options{}, newPool(t), wideEncoder(t, "bert", gguf.F16, 0))
	d, f := backendOf(t, b), newFeeder(t, b.Model)
	for _, c := range []struct{ all, pos, rows, want int }{{5, 0, 5, 2}, {5, 1, 4, 0}, {5, 0, 4, 0}, {encoderRows + 1, 0, encoderRows + 1, 0}} {
		s := &models.DenseStep{Cache: f.cache, Model: d.plan.layers.m}
		for i := range c.rows {
			s.Rows = append(s.Rows, models.RowPos{Seq: f.seq, Pos: c.pos + i, All: c.all})
		}
		if n := d.layers.reach(s); n != c.want {
			t.Errorf("%+v: %d layers", c, n)
		}
	}
}

func TestAnEmulatedEncoderHasTheSameBits(t *testing.T) {
	p, load, text := newPool(t), wideEncoder(t, "modern-bert", gguf.F16, 24), someText(45)
	var hidden [2][]float32
	for i, kind := range []string{"hexagon-go", "hexagon-qemu"} {
		hidden[i] = newFeeder(t, onDevice(t, kind, Options{}, p, load).Model).feed(len(text), text...)
	}
	if !slices.Equal(hidden[0], hidden[1]) {
		t.Errorf("NMSE %.3g", nmse(hidden[1], hidden[0]))
	}
}
