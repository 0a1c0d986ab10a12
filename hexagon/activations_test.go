package hexagon

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// rounding is a backend whose products round activations to so many levels either
// side of zero, one scale a row, and are exact otherwise. It measures what that does.
type rounding struct {
	levels      float64 // 0: not at all
	wrong, size float64 // squares of the products' differences, and of the products
}

func (r *rounding) Name() string { return "rounding" }
func (r *rounding) Err() error   { return nil }
func (r *rounding) Close() error { return nil }

func (r *rounding) Load(w *matrix.Matrix) (kernels.Linear, error) {
	d, err := convert(w)
	if err != nil {
		return nil, err
	}
	l := &roundedLinear{r, d.Rows, d.Cols, make([]float32, d.Rows*d.Cols)}
	for m := range d.Rows {
		d.Dequantize(l.w[m*d.Cols:][:d.Cols], m)
	}
	return l, nil
}

type roundedLinear struct {
	*rounding
	rows, cols int
	w          []float32
}

func (l *roundedLinear) Mul(y []float32, x *kernels.Acts) {
	rounded := make([]float64, l.cols)
	for n := range x.N() {
		row := x.Row(n)
		scale := float64(largest(row)) / l.levels
		for k, f := range row {
			switch {
			case l.levels == 0 || scale == 0:
				rounded[k] = float64(f)
			case l.levels < 0:
				rounded[k] = float64(layout.F32(layout.F16(f)))
			default:
				rounded[k] = math.RoundToEven(float64(f)/scale) * scale
			}
		}
		for m := range l.rows {
			var exact, got [4]float64 // several sums at once, which is faster
			w := l.w[m*l.cols:][:l.cols]
			for k := 0; k < l.cols; k += 4 {
				for i := range 4 {
					exact[i] += float64(w[k+i]) * float64(row[k+i])
					got[i] += float64(w[k+i]) * rounded[k+i]
				}
			}
			exact[0], got[0] = exact[0]+exact[1]+exact[2]+exact[3], got[0]+got[1]+got[2]+got[3]
			l.wrong += (got[0] - exact[0]) * (got[0] - exact[0])
			l.size += exact[0] * exact[0]
			y[n*l.rows+m] = float32(got[0])
		}
	}
}

// The 14 bits of activations that lookups allow, beside others.
func TestFourteenBitsOfActivationsAreEnough(t *testing.T) {
	sweep.Full(t)
	line, _, _ := strings.Cut(embedded.TestSet(), "\n")
	var problem struct {
		Question string
		Steps    []string
	}
	if err := json.Unmarshal([]byte(line), &problem); err != nil {
		t.Fatal(err)
	}
	threads := pool.New(1)
	defer threads.Close()
	forward := func(r *rounding) []float32 {
		f, err := embedded.Open("lutra-tiny-s")
		if err != nil {
			t.Fatal(err)
		}
		b, err := models.LoadFile(f, models.LoadOptions{Pool: threads, Backend: r})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		tokens := b.Tokenizer.Encode(nil, problem.Question+"\n"+strings.Join(problem.Steps, "\n"), tokenizer.Options{})
		tokens = tokens[:min(len(tokens), sweep.Of(t, 6, len(tokens)))]
		cache, err := kv.New(b.Model.Config().KV(), kv.Options{Type: kv.F32, BlockLen: 16, Blocks: 64, States: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer cache.Close()
		seq := cache.Open(nil)
		if err := seq.Grow(len(tokens)); err != nil {
			t.Fatal(err)
		}
		var batch models.Batch
		batch.Add(seq, 0, len(tokens), tokens...)
		if err := b.Model.Forward(&batch, cache); err != nil {
			t.Fatal(err)
		}
		return batch.Logits
	}
	exact := forward(&rounding{})
	var errors []float64
	for _, c := range []struct {
		name   string
		levels float64
	}{{"int8, as the CPU's ternary kernels", 127}, {"fp16, as tiles", -1}, {"14 bits, as lookups", device.MaxActivation}, {"16 bits, in two passes", 32767}} {
		r := &rounding{levels: c.levels}
		var wrong, size, worst float64
		for i, f := range forward(r) {
			d := float64(f) - float64(exact[i])
			wrong, size, worst = wrong+d*d, size+float64(exact[i])*float64(exact[i]), max(worst, math.Abs(d))
		}
		t.Logf("%s: products %.2g, logits %.2g relative, %.2g at most", c.name, math.Sqrt(r.wrong/r.size), math.Sqrt(wrong/size), worst)
		errors = append(errors, math.Sqrt(wrong/size))
	}
	if errors[2] > 1e-3 || errors[2] > errors[0]/10 || errors[3] > errors[2] {
		t.Errorf("errors of logits are %v", errors)
	}
}
