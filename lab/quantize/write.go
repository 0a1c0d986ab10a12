package quantize

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/models/gguf"
)

// Result has the new type, size and error of a tensor.
type Result struct {
	*Planned
	// Error is the root of the mean squared error over the mean square's, 0 if nothing changed.
	Error    float64
	Lossless bool // every value is as it was
	Trits    bool // weights were ternary: of one magnitude a block, or zero
	Weighed  bool // by importances

	squares, errors float64 // sums
}

// Ruined reports whether the tensor, whose weights were not ternary, was rounded to a type that is
// made for weights of few values. Models that were not trained so write nonsense then.
func (r *Result) Ruined() bool {
	return r.To != r.Tensor.Type && !r.Lossless && !r.Trits && (holdsTrits(r.To) || r.To == gguf.Q1_0)
}

// Totals sums results up.
type Totals struct {
	Before, After   int64 // bytes of tensors
	Weights         int64
	Ternary         int // quantised tensors whose weights were ternary
	Lossless        int // of them those that are as they were
	Weighed         int // tensors whose errors importances weighed
	squares, errors float64
}

// Add counts r in.
func (t *Totals) Add(r *Result) {
	t.Before += int64(r.Tensor.Bytes())
	t.After += int64(r.Bytes())
	t.Weights += int64(r.Len())
	t.squares += r.squares
	t.errors += r.errors
	if r.Weighed {
		t.Weighed++
	}
	if r.Trits {
		t.Ternary++
		if r.Lossless {
			t.Lossless++
		}
	}
}

// Error combines all converted tensors, as Result.Error.
func (t *Totals) Error() float64 { return relative(t.errors, t.squares) }

func relative(errors, squares float64) float64 {
	if squares == 0 {
		return 0
	}
	return math.Sqrt(errors / squares)
}

// Write writes the file, one tensor after the other, on all cores; see sees each when it is
// written. It holds some megabytes a core. Errors name the tensor: ErrValue for weights that
// are not finite or beyond what the type holds. The context's end is an error too.
func (p *Plan) Write(ctx context.Context, w io.Writer, see func(*Result)) error {
	sources := make([]gguf.Source, len(p.Tensors))
	for i := range p.Tensors {
		t := &p.Tensors[i]
		sources[i] = gguf.Source{Name: t.Name, Type: t.Type, Dims: t.Dims, Write: t.Copy}
		if t.To == t.Type {
			copied := sources[i].Write
			sources[i].Write = func(w io.Writer) error {
				if err := copied(untilDone{ctx, w}); err != nil {
					return err
				}
				see(&Result{Planned: t, Lossless: true})
				return nil
			}
			continue
		}
		sources[i].Type = t.To
		sources[i].Write = func(w io.Writer) error {
			c := conversion{Planned: t, to: untilDone{ctx, w}}
			r, err := c.run()
			if err == nil {
				see(r)
			}
			return err
		}
	}
	return gguf.WriteFrom(w, p.Metadata, sources)
}

// untilDone is a writer that a context's end makes fail.
type untilDone struct {
	ctx context.Context
	w   io.Writer
}

func (u untilDone) Write(b []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.w.Write(b)
}

// pieceLen is about how many weights a core converts at a time.
const pieceLen = 1 << 18

// conversion writes a tensor in another type.
type conversion struct {
	*Planned
	to      io.Writer
	columns []float32 // importances [matrices][columns]; nil: none
	scale   float32   // of I2_S, which is the tensor's
	pieces  []piece   // one a core
}

// piece is rows that a core converts.
type piece struct {
	lo, hi     int
	rows, back []float32 // as they were, and as they became
	raw        []byte    // blocks; of I2_S the scale too
	result     Result
}

func (c *conversion) run() (*Result, error) {
	r := &Result{Planned: c.Planned, Lossless: true, Trits: holdsTrits(c.To), Weighed: c.importance != nil}
	if c.importance != nil {
		var err error
		if c.columns, err = c.importance.of(c.Tensor); err != nil {
			return nil, err
		}
	}
	c.pieces = make([]piece, runtime.GOMAXPROCS(0))
	if c.To == gguf.I2_S {
		err := c.each(c.measure, func(p *piece) error {
			c.scale = max(c.scale, abs(largest(p.rows)))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	err := c.each(c.convert, func(p *piece) error {
		r.add(&p.result)
		n, _ := c.To.Size([]int{c.Cols(), p.hi - p.lo})
		if c.To == gguf.I2_S {
			n -= tailI2S
		}
		_, err := c.to.Write(p.raw[:n])
		return err
	})
	if err == nil && c.To == gguf.I2_S {
		var tail [tailI2S]byte
		putTailI2S(tail[:], c.scale)
		_, err = c.to.Write(tail[:])
	}
	r.Error = relative(r.errors, r.squares)
	return r, err
}

func (r *Result) add(p *Result) {
	r.squares += p.squares
	r.errors += p.errors
	r.Lossless = r.Lossless && p.Lossless
	r.Trits = r.Trits && p.Trits
}

// each calls do for all rows, a piece a core, and done for each piece in order.
func (c *conversion) each(do, done func(p *piece) error) error {
	rows, n := c.Rows(), max(1, pieceLen/c.Cols())
	for lo := 0; lo < rows; {
		var now []*piece
		for i := 0; i < len(c.pieces) && lo < rows; i++ {
			p := &c.pieces[i]
			p.lo, p.hi = lo, min(rows, lo+n)
			lo, now = p.hi, append(now, p)
		}
		if err := parallel.Each(now, func(_ int, p *piece) error { return do(p) }); err != nil {
			return err
		}
		for _, p := range now {
			if err := done(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure reads the rows, and refuses numbers that are none.
func (c *conversion) measure(p *piece) error {
	n := (p.hi - p.lo) * c.Cols()
	p.rows = slices.Grow(p.rows[:0], n)[:n]
	if err := c.Dequantize(p.rows, p.lo*c.Cols()); err != nil {
		return err
	}
	c.multiply(p.rows, p.lo)
	if i := notFinite(p.rows); i >= 0 {
		return fmt.Errorf("%w: row %d, column %d is %v", ErrValue, p.lo+i/c.Cols(), i%c.Cols(), p.rows[i])
	}
	return nil
}

// convert reads the rows, makes blocks of them and compares.
func (c *conversion) convert(p *piece) error {
	if err := c.measure(p); err != nil {
		return err
	}
	size, err := c.To.Size([]int{c.Cols(), p.hi - p.lo})
	if err != nil {
		return err
	}
	p.raw = slices.Grow(p.raw[:0], size)[:size]
	if err := c.encode(p); err != nil {
		return err
	}
	p.back = slices.Grow(p.back[:0], len(p.rows))[:len(p.rows)]
	held := gguf.Tensor{Type: c.To, Dims: []int{c.Cols(), p.hi - p.lo}, Data: p.raw}
	if err := held.Dequantize(p.back, 0); err != nil {
		return err
	}
	p.compare(c.To, c.scale)
	return nil
}

// encode sets p.raw.
func (c *conversion) encode(p *piece) error {
	if c.To == gguf.I2_S {
		blocksI2S(p.raw, p.rows, c.scale)
		putTailI2S(p.raw[len(p.raw)-tailI2S:], c.scale)
		return nil
	}
	if c.columns == nil {
		return Encode(c.To, p.raw, p.rows, nil)
	}
	row := len(p.raw) / (p.hi - p.lo)
	for lo := p.lo; lo < p.hi; { // the rows of a matrix share importances
		matrix := lo / c.Dims[1]
		hi := min(p.hi, (matrix+1)*c.Dims[1])
		dst, rows := p.raw[(lo-p.lo)*row:(hi-p.lo)*row], p.rows[(lo-p.lo)*c.Cols():(hi-p.lo)*c.Cols()]
		if err := Encode(c.To, dst, rows, c.columns[matrix*c.Cols():][:c.Cols()]); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// compare sums the errors up.
func (p *piece) compare(t gguf.Type, scale float32) {
	p.result = Result{Lossless: true}
	for i, x := range p.rows {
		d := float64(p.back[i]) - float64(x)
		p.result.errors += d * d
		p.result.squares += float64(x) * float64(x)
		p.result.Lossless = p.result.Lossless && d == 0
	}
	switch {
	case t == gguf.I2_S:
		p.result.Trits = !slices.ContainsFunc(p.rows, func(x float32) bool { return x != 0 && abs(x) != scale })
	case holdsTrits(t):
		p.result.Trits = isTernary(p.rows, t.BlockLen())
	}
}
