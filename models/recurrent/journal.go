package recurrent

import (
	"slices"

	"github.com/lutra-lm/lutra/kernels/delta"
)

// A state cannot go back, so the rows of guesses leave what it takes to undo them: the step keeps what they overwrite,
// and what they bring to each layer. TakeBack restores the state before the first guess and takes those rows that were
// right through the layers again, which give the same bits. Of a gated delta net the rows of a chunk are added beside
// each other, so that little is overwritten: see delta.Overwritten.

// journal holds what the guesses of the last step brought to the layers, but for the last one of each span: it is right
// only if all are.
type journal struct {
	layers []entry
	first  []int // of each span its first row in the entries
	rows   int
}

// entry is the rows of a layer.
type entry struct {
	w           *Weights // nil: none
	rows, gates []float32
}

// Undo says how many rows of a span of the last step stay: those before the guesses at least.
type Undo struct {
	Span Span
	Of   int // its number in the step
	Keep int
}

// Begin tells of the spans of the step whose runs follow.
func (p *Pass) Begin(spans []Span) {
	j := &p.journal
	j.first, j.rows = j.first[:0], 0
	for i := range spans {
		j.first = append(j.first, j.rows)
		j.rows += spans[i].repeatable()
	}
	for i := range j.layers {
		j.layers[i].w = nil
	}
}

// repeatable returns the number of guesses that may have to be computed again.
func (sp *Span) repeatable() int {
	if !sp.Guesses {
		return 0
	}
	return sp.N - sp.certain() - 1
}

// note copies what the guesses bring to a layer, unless none does.
func (j *journal) note(p *Pass, layer int) {
	if !slices.ContainsFunc(p.spans, func(sp Span) bool { return sp.Guesses }) {
		return
	}
	for len(j.layers) <= layer {
		j.layers = append(j.layers, entry{})
	}
	e, width, gates := &j.layers[layer], p.shape.inputs(), 2*p.shape.ValueHeads
	e.w = p.w
	e.rows, e.gates = slices.Grow(e.rows[:0], j.rows*width)[:j.rows*width], slices.Grow(e.gates[:0], j.rows*gates)[:j.rows*gates]
	for i := range p.spans {
		sp := &p.spans[i]
		for k := range sp.repeatable() {
			from, to := sp.First+sp.certain()+k, j.first[i]+k
			copy(e.rows[to*width:][:width], p.rows[from*p.stride:])
			copy(e.gates[to*gates:][:gates], p.gates[from*gates:])
		}
	}
}

// inputs returns the numbers that a row brings to a layer, gates apart.
func (s Shape) inputs() int { return s.Channels() + s.StateSpace.Heads }

// GuessBytes returns the memory that a row of guesses takes in so many layers.
func (s Shape) GuessBytes(layers int) int { return 4 * layers * (s.inputs() + 2*s.ValueHeads) }

// TakeBack undoes rows of the last step.
func (p *Pass) TakeBack(undo []Undo) {
	var again []Span
	spans := make([]Span, len(undo))
	for i, u := range undo {
		sp := u.Span
		spans[i] = sp
		if n := u.Keep - sp.certain(); n > 0 {
			again = append(again, Span{First: p.journal.first[u.Of], N: n, Position: sp.Position + sp.certain(), State: sp.State})
		}
	}
	for layer := range p.journal.layers {
		e := &p.journal.layers[layer]
		if e.w == nil {
			continue
		}
		p.at, p.w, p.spans = layer*p.shape.Size(), e.w, spans
		p.each((*Pass).restore, len(spans)*(1+p.heads()))
		if p.rows, p.gates, p.spans = e.rows, e.gates, again; len(again) > 0 {
			p.stride = p.shape.inputs()
			p.step()
		}
	}
	p.rows, p.gates, p.spans, p.w = nil, nil, nil, nil
}

// heads returns the number of a state's heads.
func (p *Pass) heads() int { return p.shape.ValueHeads + p.shape.StateSpace.Heads }

// restore brings back what the guesses of a span have overwritten: the tail of the convolution, or a head's part.
func (p *Pass) restore(_, part int) {
	s, each := &p.shape, 1+p.heads()
	sp, head := &p.spans[part/each], part%each-1
	lo, size := p.at+s.tail(), delta.Size(s.Width)
	switch {
	case head < 0:
		sp.restore(p.at, lo)
	case s.ValueHeads > 0:
		sp.restore(lo+head*size+sp.overwritten(s.Width), lo+(head+1)*size)
	default:
		size = delta.SpaceSize(s.StateSpace.HeadDim, s.StateSpace.Len)
		sp.restore(lo+head*size, lo+(head+1)*size)
	}
}

// certain returns how many rows of a span with guesses are none.
func (sp *Span) certain() int { return sp.Copies[0].After }

// overwritten returns where the part of a head's state begins that guesses overwrite, if there are any.
func (sp *Span) overwritten(width int) int {
	if !sp.Guesses {
		return 0
	}
	return delta.Overwritten(width, sp.Position+sp.certain(), sp.Position+sp.N)
}

// save copies a part of the state, restore brings it back.
func (sp *Span) save(c Copy, lo, hi int) { copy(c.State[lo:hi], sp.State[lo:hi]) }
func (sp *Span) restore(lo, hi int)      { copy(sp.State[lo:hi], sp.Copies[0].State[lo:hi]) }
