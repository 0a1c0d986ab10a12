package weights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
)

// Options says what becomes of weights.
type Options struct {
	Pool    *pool.Pool
	Backend kernels.Backend // where matrices go first; nil: the CPU
	Spare   bool            // the CPU multiplies them too once the backend has failed
	Packing string          // of ternary matrices: one of Packings; "": PackingAuto
	Exact   bool            // widen all weights to float32
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

// Loader reads the tensors of a model file. The first failure sticks and later
// calls return zero values, so that builders of models read as lists. Each form in which a
// builder may want a tensor is a method, hence their number.
type Loader struct {
	Params int64 // weights so far
	Bytes  int64 // of them in memory

	file     *gguf.File
	opt      Options
	cpu      kernels.Backend
	sent     int64 // weights that the backend multiplies, of Params
	err      error
	packings map[string]bool      // of the layers' matrices
	used     map[string]bool      // tensors that were asked for
	latest   string               // of them
	zero     map[string]bool      // tensors read so far: whether they hold zeros alone
	factors  map[string][]float32 // of the matrices of tensors that were asked for theirs; nil: ones

	memory      *cpu.Arena // of the matrices
	raw         []byte     // what tensors are read into
	read, total int64      // bytes of tensors so far, and of all
}

// NewLoader reads from file, which must stay open.
func NewLoader(file *gguf.File, opt Options) *Loader {
	l := &Loader{
		file: file, opt: opt, memory: new(cpu.Arena),
		packings: map[string]bool{}, used: map[string]bool{}, zero: map[string]bool{}, factors: map[string][]float32{},
	}
	if opt.Pool != nil { // else no matrix is read
		l.cpu = kernels.NewCPU(opt.Pool)
	}
	if opt.Backend == nil {
		l.opt.Backend = l.cpu
	}
	for i := range file.Tensors {
		l.total += int64(file.Tensors[i].Bytes())
	}
	return l
}

// Fail makes this the loader's failure, if it is the first.
func (l *Loader) Fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(format, args...)
	}
}

// Err returns the first failure.
func (l *Loader) Err() error { return l.err }

// Latest returns the name of the tensor that was asked for last.
func (l *Loader) Latest() string { return l.latest }

// Local tells whether the matrices are the CPU's.
func (l *Loader) Local() bool { return l.opt.Backend == l.cpu }

// Place has the matrices that follow loaded on b; nil: on the CPU.
func (l *Loader) Place(b kernels.Backend) {
	if l.opt.Backend = b; b == nil {
		l.opt.Backend = l.cpu
	}
}

// Sent returns how many of the weights a backend other than the CPU multiplies.
func (l *Loader) Sent() int64 { return l.sent }

// Memory returns where the matrices lie. Whoever has it frees it.
func (l *Loader) Memory() *cpu.Arena { return l.memory }

// Into has the matrices that follow lie in a, which is not the loader's to free: those
// of a model that runs already. Progress and Interrupt are not called any more.
func (l *Loader) Into(a *cpu.Arena) { l.memory, l.opt.Progress, l.opt.Interrupt = a, nil, nil }

// Read returns how many bytes of tensors have been read.
func (l *Loader) Read() int64 { return l.read }

// Packings returns what the matrices of the layers run as, such as "I2".
func (l *Loader) Packings() string {
	return strings.Join(slices.Sorted(maps.Keys(l.packings)), "+")
}

// Ignore notes that a tensor is known and not wanted.
func (l *Loader) Ignore(name string) { l.used[name] = true }

// Finish tells that nothing more will be read. It returns the names of the
// tensors that nobody asked for.
func (l *Loader) Finish() (unused []string) {
	for i := range l.file.Tensors {
		if name := l.file.Tensors[i].Name; !l.used[name] {
			unused = append(unused, name)
		}
	}
	if l.err == nil {
		l.progress(int(l.total - l.read))
	}
	return unused
}

// Zeros names the tensors that hold nothing else.
func (l *Loader) Zeros() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(l.zero)) {
		if l.zero[name] {
			names = append(names, name)
		}
	}
	return names
}

// interrupted says why the loading should end; nil: it should not.
func (l *Loader) interrupted() error {
	if l.opt.Interrupt == nil {
		return nil
	}
	return l.opt.Interrupt()
}

// progress tells that bytes more of tensors have been read.
func (l *Loader) progress(bytes int) {
	l.read += int64(bytes)
	if l.opt.Progress != nil {
		l.opt.Progress(min(l.read, l.total), l.total)
	}
}
