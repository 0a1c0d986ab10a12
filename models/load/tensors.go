package load

import (
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/weights"
)

// Options says what becomes of weights.
type Options struct {
	weights.Form
	Pool    *pool.Pool
	Backend kernels.Backend // where matrices go first; nil: the CPU
	Spare   bool            // the CPU multiplies them too once the backend has failed
	Scales  bool            // matrices may have a factor of their own, *.scale

	// Observe, if any, sees the rows that a product reads, before it: of is what the
	// product holds of the file. Products of rows that are pinned call it at the same time.
	Observe func(of []Part, rows *kernels.Acts)

	// Progress, if any, is told how many bytes of the tensors have been read, of
	// how many, now and then, by the loading goroutine.
	Progress func(done, total int64)

	// Interrupt, if any, is asked before each piece of a tensor is read. Its error
	// ends the loading.
	Interrupt func() error
}

// Tensors finds the tensors of a file by name and shape, and reads them. Vectors stay as they are, matrices are
// packed and placed on a backend, and several that read the same rows are one product. It notes which tensors
// were asked for.
type Tensors struct {
	*Report
	*Placement
	Totals
	reader

	file    *gguf.File
	form    weights.Form
	scales  bool
	used    map[string]bool      // tensors that were asked for
	latest  string               // of them
	factors map[string][]float32 // of the matrices of tensors that were asked for theirs; nil: ones
}

// NewTensors reads from file, which must stay open, and reports to r.
func NewTensors(file *gguf.File, r *Report, opt Options) *Tensors {
	t := &Tensors{
		Report: r, Totals: Totals{packings: map[string]bool{}}, reader: newReader(file, &opt),
		file: file, form: opt.Form, scales: opt.Scales, used: map[string]bool{}, factors: map[string][]float32{},
	}
	t.Placement = newPlacement(&opt, &t.Totals)
	return t
}

// Has tells whether the file has a tensor of that name.
func (t *Tensors) Has(name string) bool { return t.file.Tensor(name) != nil }

// File returns the file.
func (t *Tensors) File() *gguf.File { return t.file }

// Latest returns the name of the tensor that was asked for last.
func (t *Tensors) Latest() string { return t.latest }

// Ignore notes that a tensor is known and not wanted.
func (t *Tensors) Ignore(name string) { t.used[name] = true }

// IgnoreAll does as Ignore, of all tensors whose names begin with prefix.
func (t *Tensors) IgnoreAll(prefix string) {
	for i := range t.file.Tensors {
		if name := t.file.Tensors[i].Name; strings.HasPrefix(name, prefix) {
			t.Ignore(name)
		}
	}
}

// Finish tells that nothing more will be read. It returns the names of the
// tensors that nobody asked for.
func (t *Tensors) Finish() (unused []string) {
	for i := range t.file.Tensors {
		if name := t.file.Tensors[i].Name; !t.used[name] {
			unused = append(unused, name)
		}
	}
	if t.Err() == nil {
		t.advance(int(t.total - t.read))
	}
	return unused
}

// Tensor finds the tensor of that name and shape (fastest dimension first), as
// it stands in the file. It returns nil after a failure.
func (t *Tensors) Tensor(name string, dims ...int) *gguf.Tensor {
	if t.Err() != nil {
		return nil
	}
	t.used[name], t.latest = true, name
	x := t.file.Tensor(name)
	if x == nil {
		t.Fail("tensor %s is missing", name)
		return nil
	}
	// Trailing ones do not change a shape.
	if got := trimOnes(x.Dims); !slices.Equal(got, trimOnes(dims)) {
		t.Fail("tensor %s has shape %v, want %v", name, x.Dims, dims)
		return nil
	}
	if !x.Type.Supported() {
		t.Fail("tensor %s has storage type %v, which is not supported", name, x.Type)
		return nil
	}
	return x
}

func trimOnes(dims []int) []int {
	for len(dims) > 1 && dims[len(dims)-1] == 1 {
		dims = dims[:len(dims)-1]
	}
	return dims
}

// OptionalVector reads what Vector does, or returns nil when the tensor is missing.
func (t *Tensors) OptionalVector(name string, dims ...int) []float32 {
	if !t.Has(name) {
		return nil
	}
	return t.Vector(name, dims...)
}

// Vector reads a tensor of numbers that are used as they are, the first dimension the innermost.
func (t *Tensors) Vector(name string, dims ...int) []float32 {
	x := t.Tensor(name, dims...)
	if x == nil {
		return nil
	}
	if err := t.interrupted(); err != nil {
		t.Fail("%w", err)
		return nil
	}
	v := make([]float32, x.Len())
	if err := x.Dequantize(v, 0); err != nil {
		t.Fail("%w", err)
	}
	if i := slices.IndexFunc(v, func(x float32) bool { return x-x != 0 }); i >= 0 {
		t.Fail("tensor %s: element %d is %v", name, i, v[i])
	}
	if strings.HasSuffix(name, "norm.weight") {
		t.zero[name] = !slices.ContainsFunc(v, func(x float32) bool { return x != 0 })
	}
	t.advance(x.Bytes())
	t.Params += int64(len(v))
	t.Bytes += 4 * int64(len(v))
	return v
}

// Wide reads W[rows][cols] in float32 on the CPU, whatever its storage type and the
// backend: its products have activations of float32. It is not among Packings.
func (t *Tensors) Wide(name string, rows, cols int) Stacked {
	s := Stacked{}
	m := t.Whole(name, rows, cols)
	if m == nil {
		return s
	}
	s.add(m)
	w, err := t.build(t.arena(), weights.Form{Exact: true}, m)
	if err != nil {
		t.Fail("%w", err)
		return s
	}
	t.count(w)
	if s.whole, err = t.loadHere(w); err != nil {
		t.Fail("tensor %s: %w", name, err)
		return s
	}
	s.whole = t.observed(s.whole, s.of)
	return s
}

// Whole finds a stored matrix for Stack, or returns nil after a failure.
func (t *Tensors) Whole(name string, rows, cols int) *Stored {
	return t.Rows(name, 0, rows, cols, rows)
}

// Rows finds rows [lo, hi) of a stored tensor of those dimensions, the first
// the innermost, of which all but that one count as rows. It returns nil after a failure.
func (t *Tensors) Rows(name string, lo, hi int, dims ...int) *Stored {
	x := t.Tensor(name, dims...)
	if x == nil {
		return nil
	}
	factor := t.factor(x, lo)
	if t.Err() != nil {
		return nil
	}
	return &Stored{x, lo, hi, factor}
}

// Coarse finds rows as Rows does, rounded to 4 bits a weight if they are stored in more: what reads them only guesses.
func (t *Tensors) Coarse(name string, lo, hi int, dims ...int) *Stored {
	s, to := t.Rows(name, lo, hi, dims...), gguf.Q4_0
	if s == nil || t.form.Exact {
		return s
	}
	cols, from := s.t.Cols(), s.t.Type
	if cols%to.BlockLen() != 0 || from.BlockBytes()*to.BlockLen() <= to.BlockBytes()*from.BlockLen() {
		return s
	}
	size := cols / to.BlockLen() * to.BlockBytes()
	data := make([]byte, (hi-lo)*size)
	err := parallel.Each(slices.Collect(slices.Chunk(data, 1024*size)), func(piece int, dst []byte) error {
		row := make([]float32, cols)
		for i := range len(dst) / size {
			if err := s.t.Dequantize(row, (lo+piece*1024+i)*cols); err != nil {
				return err
			}
			if err := gguf.Quantize(to, dst[i*size:][:size], row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fail("tensor %s: %w", name, err)
		return nil
	}
	return &Stored{&gguf.Tensor{Name: name, Type: to, Dims: []int{cols, hi - lo}, Data: data}, 0, hi - lo, s.factor}
}

// Into has the matrices that follow lie in a, which is not the loader's to free: matrices
// of a model that runs already. Progress and Interrupt are not called any more.
func (t *Tensors) Into(a *cpu.Arena) { t.memory, t.progress, t.interrupt = a, nil, nil }

// MostBytes returns the size in memory that a stored matrix of rows × cols has at
// most, whatever its weights are.
func (t *Tensors) MostBytes(x *gguf.Tensor, rows, cols int) int {
	if factors := t.factorsOf(x); t.form.Exact || factors != nil && x.Type != gguf.NVFP4 {
		return kernels.DataSize(rows, cols, matrix.F32)
	}
	return weights.MostBytes(x.Type, rows, cols)
}

// factorsOf returns the factor of each matrix of a tensor: the numbers of the tensor beside it, if the architecture
// or the type has such; nil: one.
func (t *Tensors) factorsOf(x *gguf.Tensor) []float32 {
	if !t.scales && x.Type != gguf.NVFP4 {
		return nil
	}
	if of, known := t.factors[x.Name]; known {
		return of
	}
	stem := strings.TrimSuffix(x.Name, "weight")
	if x.Type == gguf.NVFP4 { // what activations were scaled by elsewhere
		t.Ignore(stem + "input_scale")
	}
	of := t.OptionalVector(stem+"scale", partOf(x, 0).Matrices)
	t.factors[x.Name] = of
	return of
}

// factor returns the factor of the matrix at row lo of x.
func (t *Tensors) factor(x *gguf.Tensor, lo int) float32 {
	if of := t.factorsOf(x); of != nil {
		return of[partOf(x, lo).Matrix]
	}
	return 1
}
