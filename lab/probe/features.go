package probe

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/probe"
)

// Trainer has the problems that a probe is trained on, and what its model made of them.
type Trainer struct {
	problems []problem
	n        int    // candidates of a problem
	verifier string // whose scores answers have; empty: nobody's
	read     *models.Probe
	hidden   int
	folds    int // parts of the problems, each of which is held out once; 1: one in ten is, and stays so
	most     int // answers of a problem that are read for training
}

// mostFeatures is the most numbers of a token's states that are read unless layers are named: more need more answers than anyone
// samples.
const mostFeatures = 8192

// memory bounds what features take, in bytes.
const memory = 3 << 30

// beginnings are the answers of a problem whose beginnings are read, where the whole answers need no reading.
const beginnings = 4

// tenths are the parts that problems are divided into unless others are named.
const tenths = 10

// New makes a trainer for a model of that shape. It reads the given layers, or where none are given what Layers returns.
// With folds beyond 1 each of so many parts is held out once, and the probe is then fitted to all.
func New(c *models.Config, layers []int, folds int) (*Trainer, error) {
	if !c.Generates() {
		return nil, errors.New("probe: the model writes no text")
	}
	if len(layers) == 0 {
		layers = Layers(c)
	}
	for i, l := range layers {
		if l < 0 || l >= c.Layers || i > 0 && l <= layers[i-1] {
			return nil, fmt.Errorf("probe: layer %d: want ascending numbers below %d", l, c.Layers)
		}
	}
	return &Trainer{read: &models.Probe{Layers: layers}, hidden: c.Hidden, folds: folds}, nil
}

// Layers returns the layers that are read of a model unless others are named: as many as mostFeatures allow,
// evenly spaced up to the last.
func Layers(c *models.Config) []int {
	n := max(1, min(c.Layers, mostFeatures/c.Hidden))
	layers := make([]int, n)
	for i := range layers {
		layers[i] = (i+1)*c.Layers/n - 1
	}
	return layers
}

// Reads returns what an engine has to read for the trainer.
func (t *Trainer) Reads() *models.Probe { return t.read }

// width returns how many features an answer has.
func (t *Trainer) width() int { return 2*len(t.read.Layers)*t.hidden + len(probe.TokenFeatures) }

// divide says what each problem serves for: one part is held out, the next chooses the
// regularisation. It depends on the question alone. Part -1 holds nothing out.
func (t *Trainer) divide(part int) {
	parts := tenths
	if t.folds > 1 {
		parts = t.folds
	}
	for i := range t.problems {
		p := &t.problems[i]
		switch at := int(hash(p.question) % uint64(parts)); {
		case at == part:
			p.part = held
		case at == (part+1)%parts:
			p.part = tuning
		default:
			p.part = fitting
		}
	}
}

// bound says how many answers of a problem are read. It fails where folds want all, and they take too much memory.
func (t *Trainer) bound() error {
	const times = 12 // bytes a feature: of the whole answer, standardised, and of its beginning
	t.most = max(2, memory/(times*t.width()*max(1, len(t.problems))))
	if t.folds > 1 && t.most < t.n {
		return fmt.Errorf("the states of %d answers to each of %d problems take more than %d MiB: read fewer layers", t.n, len(t.problems), memory>>20)
	}
	return nil
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s)) // never fails
	return h.Sum64()
}

// features reads the states of a problem's answers: all of one that is held out, else at most t.most,
// right and wrong ones in turns.
func (t *Trainer) features(ctx context.Context, m *tts.Model, p *problem) error {
	most := t.most
	if len(p.answers) > 0 && p.answers[0].whole != nil {
		most = min(most, beginnings)
	}
	chosen := p.choose(most)
	if len(chosen) == 0 {
		return nil
	}
	return busily(ctx, func() error {
		root, err := m.Engine.OpenBackground(ctx, p.prompt)
		if err != nil {
			return err
		}
		defer root.Close()
		for _, a := range chosen {
			if err := t.featuresOf(ctx, m, root, p, a); err != nil {
				return err
			}
		}
		return nil
	})
}

// busily does what an engine may be too busy for, until it is not.
func busily(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !errors.Is(err, batcher.ErrBusy) {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// choose returns the answers whose states are read.
func (p *problem) choose(most int) (list []*answer) {
	var sides [2][]*answer
	for i := range p.answers {
		a := &p.answers[i]
		side := 0
		if a.right {
			side = 1
		}
		sides[side] = append(sides[side], a)
	}
	for i := range p.answers {
		for _, side := range sides {
			if i < len(side) && (len(list) < most || p.part == held) {
				list = append(list, side[i])
			}
		}
	}
	return list
}

// featuresOf reads one answer, which follows what root holds.
func (t *Trainer) featuresOf(ctx context.Context, m *tts.Model, root *batcher.Sequence, p *problem, a *answer) error {
	var ends []int // of lines, but for the last
	for i, id := range a.ids[:len(a.ids)-1] {
		if strings.Contains(string(m.Tokenizer.Piece(id)), "\n") {
			ends = append(ends, i)
		}
	}
	end := -1
	if len(ends) > 0 && (p.part != held || t.folds > 1) {
		end = ends[int(hash(fmt.Sprint(p.question, a.ids))%uint64(len(ends)))]
	}
	ids := a.ids
	if a.whole != nil {
		ids = ids[:end+1]
	}
	if len(ids) == 0 {
		return nil
	}
	forks, err := root.Fork(ctx, 1)
	if err != nil {
		return err
	}
	seq := forks[0]
	defer seq.Close()
	seq.Append(ids...)
	toks, err := seq.Scores(ctx, len(p.prompt), 0)
	if err != nil {
		return err
	}
	var r tts.Readings
	for i := range toks {
		if r.Add(&toks[i]); i == end {
			a.begun = probe.Features(make([]float32, 0, t.width()), &r)
		}
	}
	if a.whole == nil {
		a.whole = probe.Features(make([]float32, 0, t.width()), &r)
	}
	return nil
}
