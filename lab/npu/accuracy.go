package npu

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
)

// scheme is a way to store weights. A nil quantise keeps them.
type scheme struct {
	name     string
	bits     float64 // of a weight, scales and offsets included; rows' own scales left out
	quantise func(layout.Rows) (layout.Dequantizer, error)
}

// format quantises to a format of the device.
func format(f layout.Format) func(layout.Rows) (layout.Dequantizer, error) {
	return func(r layout.Rows) (layout.Dequantizer, error) { return layout.Quantize(r, f) }
}

var schemes = []scheme{
	{"float32", 32, nil},
	{"W4 per channel", 4, format(layout.Format{Bits: 4, A: 1, B: 8})},
	{"W4 per block of 64", 4.5, format(layout.Format{Bits: 4, A: 1, Group: 64, Offsets: true})},
	{"W2 per channel", 2, format(layout.Format{Bits: 2, A: 2, B: 3})},
	{"W2 per block of 64", 2.5, format(layout.Format{Bits: 2, A: 1, Group: 64, Offsets: true})},
	{"Q4_0, common groups of 32", 4.5, format(layout.Q4_0)},
	{"Q4_0, tile groups of 2×16", 4.5, func(r layout.Rows) (layout.Dequantizer, error) {
		return layout.QuantizeTiles(r, layout.Q4Values[:]), nil
	}},
}

// Accuracy measures the cost of storing an embedded model's weights in few bits: the error of its weights, the perplexity of
// right solutions, and right answers to the first limit problems of the test set.
//
// The embedded models are ternary, which every scheme holds nearly as it is. So the input of each matrix is rotated by signs
// and a Hadamard transform, and the matrix with it. The model computes the same, with weights that are spread as in models that
// were not trained for few bits.
func Accuracy(ctx context.Context, model string, limit int, done func()) (*Ablation, error) {
	return accuracy(ctx, model, limit, schemes, done)
}

// accuracy computes Accuracy of some schemes.
func accuracy(ctx context.Context, model string, limit int, schemes []scheme, done func()) (*Ablation, error) {
	problems, err := solved(limit)
	if err != nil {
		return nil, err
	}
	file, err := embedded.Open(model)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	dir, err := os.MkdirTemp("", "lutra-accuracy")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	a := &Ablation{
		Name:  "accuracy",
		Title: fmt.Sprintf("Weights of few bits, %s, %d problems (T-MAN, Table 4; TTS, Table 4)", model, len(problems)),
		Kind:  "computed here, on the CPU but for the last row, from weights that were rounded to what the device stores; nothing is modelled",
		Head:  []string{"storage", "bits a weight", "error of weights", "perplexity", "right", "right %"},
	}
	path := filepath.Join(dir, "model.gguf")
	for _, s := range schemes {
		wrong, err := s.write(path, file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		if err := a.examined(ctx, s.name, s.bits, wrong, subject{config.Model{Path: path, Name: "stored"}, config.CPU}, problems); err != nil {
			return nil, err
		}
		done()
	}
	for _, backend := range backends {
		if err := a.examined(ctx, "as trained, "+backend, 2, 0, subject{config.Model{Embedded: model}, backend}, problems); err != nil {
			return nil, err
		}
		done()
	}
	a.note("The last two are the ternary model itself by the CPU's arithmetic and by the device's: lookups of 14 bits, fp16 tiles, and")
	a.note("attention in fp16 with a table of exponentials (TTS, Table 5).")
	a.note("T-MAN finds perplexities of 12.81 with W2 per block beside 18.62 with W4 per channel on Llama-3.1-8B, and 13.14 beside 25.37")
	a.note("on Qwen3-8B; the other paper 10.206 with tile groups beside 10.190 with common ones on Qwen2.5-1.5B.")
	return a, nil
}

// backends compute the model as it was trained.
var backends = []string{config.CPU, "hexagon-go"}

// examined adds the row of a model.
func (a *Ablation) examined(ctx context.Context, name string, bits, wrong float64, s subject, problems []solvedProblem) error {
	perplexity, right, err := s.examine(ctx, problems)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	a.row(name, fmt.Sprintf("%.1f", bits), fmt.Sprintf("%.1f %%", 100*wrong), fmt.Sprintf("%.4f", perplexity), right,
		fmt.Sprintf("%.1f", 100*float64(right)/float64(len(problems))))
	return nil
}

// Storages returns how often Accuracy calls done.
func Storages() int { return len(schemes) + len(backends) }

// solvedProblem is a problem with its solution as the models were taught to write it.
type solvedProblem struct {
	Question string      `json:"question"`
	Number   json.Number `json:"answer"`
	Steps    []string    `json:"steps"`
}

func (p solvedProblem) solution() string {
	return strings.Join(p.Steps, "\n") + "\nAnswer: " + p.Number.String()
}

func solved(limit int) ([]solvedProblem, error) {
	var list []solvedProblem
	for line := range strings.Lines(embedded.TestSet()) {
		if len(list) == limit {
			break
		}
		var p solvedProblem
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			return nil, fmt.Errorf("npu: the test set: %w", err)
		}
		list = append(list, p)
	}
	return list, nil
}

// write writes a copy of a model with rotated matrices, quantised, and returns the
// relative error of their weights.
func (s scheme) write(path string, f *gguf.File) (wrong float64, err error) {
	var tensors []gguf.Tensor
	var names []string
	signs := map[int][]float32{}
	var lost, all float64
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if !ofLayer.MatchString(t.Name) || len(t.Dims) != 2 {
			tensors = append(tensors, *t)
			continue
		}
		w := make([]float32, t.Len())
		if err := t.Dequantize(w, 0); err != nil {
			return 0, err
		}
		cols := t.Cols()
		if signs[cols] == nil {
			signs[cols] = someSigns(cols)
		}
		rows := layout.Rows{Rows: t.Rows(), Cols: cols, Row: func(m int, dst []float32) { copy(dst, w[m*cols:(m+1)*cols]) }}
		for m := range rows.Rows {
			rotate(w[m*cols:(m+1)*cols], signs[cols])
		}
		if s.quantise != nil {
			d, err := s.quantise(rows)
			if err != nil {
				return 0, err
			}
			e := layout.RelativeError(rows, d)
			size := 0.0
			for _, v := range w {
				size += float64(v) * float64(v)
			}
			lost, all = lost+e*e*size, all+size
			for m := range rows.Rows {
				d.Dequantize(w[m*cols:(m+1)*cols], m)
			}
		}
		names = append(names, t.Name)
		tensors = append(tensors, gguf.Tensor{Name: t.Name, Type: gguf.F32, Dims: t.Dims, Data: floats(w)})
	}
	md := maps.Clone(f.Metadata)
	maps.Copy(md, rotation(names, signs))
	var out bytes.Buffer
	if err := gguf.Write(&out, md, tensors); err != nil {
		return 0, err
	}
	if all > 0 {
		wrong = math.Sqrt(lost / all)
	}
	return wrong, os.WriteFile(path, out.Bytes(), 0o600)
}

// hadamardBlock is the size of the transforms, a divisor of all widths.
const hadamardBlock = 256

// rotation returns what a file says of its rotated matrices.
func rotation(names []string, signs map[int][]float32) gguf.Metadata {
	var widths []int64
	var values []int8
	for _, width := range slices.Sorted(maps.Keys(signs)) {
		widths = append(widths, int64(width))
		for _, v := range signs[width] {
			values = append(values, int8(v))
		}
	}
	const key = "prism.hadamard."
	return gguf.Metadata{
		key + "version": int64(1), key + "transform": "normalized-sylvester-walsh-hadamard", key + "axis": "input-last-dimension",
		key + "block_size": int64(hadamardBlock), key + "sign_mode": "explicit", key + "sign_widths": widths, key + "sign_values": values,
		key + "weight_names": names,
	}
}

// someSigns makes signs that are the same each time.
func someSigns(n int) []float32 {
	s := make([]float32, n)
	x := uint32(n)
	for i := range s {
		x = x*1664525 + 1013904223
		s[i] = 1 - 2*float32(x>>31)
	}
	return s
}

// rotate applies signs and the normalised transform to blocks of a row.
func rotate(row, signs []float32) {
	for i := range row {
		row[i] *= signs[i]
	}
	scale := float32(1 / math.Sqrt(hadamardBlock))
	for lo := 0; lo < len(row); lo += hadamardBlock {
		b := row[lo : lo+hadamardBlock]
		for h := 1; h < len(b); h *= 2 {
			for i := 0; i < len(b); i += 2 * h {
				for j := i; j < i+h; j++ {
					b[j], b[j+h] = b[j]+b[j+h], b[j]-b[j+h]
				}
			}
		}
		for i := range b {
			b[i] *= scale
		}
	}
}

func floats(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}
