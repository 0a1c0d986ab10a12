package calibration

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/hexagon/experts"
)

// Calibration counts the choices of a model's routers on data sets. Plans are made of the first
// set; further ones say how well it foretells others.
type Calibration struct {
	Kind     string        `json:"kind"` // Kind
	Shape    experts.Shape `json:"shape"`
	Sets     []Set         `json:"sets"`
	Overlaps []Overlap     `json:"overlaps,omitempty"` // between the first set and each other one
}

// Kind is the kind of files with calibrations.
const Kind = "lutra-experts-calibration"

// Set counts the routers' choices on one data set.
type Set struct {
	Name    string  `json:"name"`
	Prompts int     `json:"prompts"`
	Tokens  int64   `json:"tokens"`
	Layers  []Loads `json:"layers"`
	Chunks  []Split `json:"chunks"` // the same tokens, in chunks of several sizes
}

// Loads holds the loads of a layer's experts.
type Loads struct {
	Tokens    []int64 `json:"tokens"`    // [experts] that chose each
	Order     []int   `json:"order"`     // [experts] the most popular first, of equal ones the first
	Imbalance float64 `json:"imbalance"` // r: the most popular expert's tokens by the mean
}

// Split is a set's tokens in chunks of at most Size tokens of one prompt.
type Split struct {
	Size   int         `json:"size"`
	Count  int         `json:"count"`  // of chunks
	Layers [][]Tallies `json:"layers"` // [layers][experts]
}

// Tallies say how many chunks gave an expert how many rows, by rows ascending; chunks
// that gave it none are left out.
type Tallies []Tally

// Tally is rows and the number of chunks that had so many.
type Tally [2]int64

// Rows returns how many rows a chunk gave the expert.
func (t Tally) Rows() int { return int(t[0]) }

// Chunks returns how many chunks did.
func (t Tally) Chunks() int64 { return t[1] }

// Beyond returns the rows of all chunks that an expert of that capacity has no room for.
func (t Tallies) Beyond(capacity int) int64 {
	n := int64(0)
	for _, x := range t {
		n += int64(max(0, x.Rows()-capacity)) * x.Chunks()
	}
	return n
}

// Overlap says how alike the popular experts of two sets are (NPUMoE §5.8).
type Overlap struct {
	First  string    `json:"first"`
	Other  string    `json:"other"`
	K      int       `json:"k"`
	Layers []float64 `json:"layers"` // share of a layer's K most popular experts that both have
	// Median and Mean summarise the layers' overlaps.
	Median float64 `json:"median"`
	Mean   float64 `json:"mean"`
	// Covered is the share of the other set's choices that fall on the first set's K
	// most popular experts.
	Covered float64 `json:"covered"`
}

// Bounds of what a file may say.
const (
	mostSets    = 16
	mostSplits  = 16
	mostTokens  = 1 << 40
	mostTallies = 1 << 22 // of all experts
)

// newLoads ranks a layer's experts.
func newLoads(tokens []int64) Loads {
	l := Loads{Tokens: tokens, Order: make([]int, len(tokens))}
	sum, most := int64(0), int64(0)
	for e, n := range tokens {
		l.Order[e] = e
		sum, most = sum+n, max(most, n)
	}
	slices.SortStableFunc(l.Order, func(a, b int) int { return cmp.Compare(tokens[b], tokens[a]) })
	if sum > 0 {
		l.Imbalance = float64(most) * float64(len(tokens)) / float64(sum)
	}
	return l
}

// Check reports what no calibration says.
func (c *Calibration) Check() error {
	if c.Kind != Kind {
		return fmt.Errorf("its kind is %.40q, want %q", c.Kind, Kind)
	}
	if err := c.Shape.Check(); err != nil {
		return err
	}
	if len(c.Sets) < 1 || len(c.Sets) > mostSets {
		return fmt.Errorf("it has %d data sets, want 1 to %d", len(c.Sets), mostSets)
	}
	tallies := 0
	for i := range c.Sets {
		s := &c.Sets[i]
		if err := s.check(c.Shape, &tallies); err != nil {
			return fmt.Errorf("data set %d, %.40q: %w", i+1, s.Name, err)
		}
	}
	if len(c.Overlaps) > mostSets*len(overlapOf) {
		return fmt.Errorf("it has %d overlaps", len(c.Overlaps))
	}
	for i := range c.Overlaps {
		if err := c.Overlaps[i].check(c.Shape); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) check(shape experts.Shape, tallies *int) error {
	switch {
	case len(s.Name) > experts.MostName:
		return fmt.Errorf("a name of %d bytes", len(s.Name))
	case s.Tokens < 1 || s.Tokens > mostTokens || s.Prompts < 1 || int64(s.Prompts) > s.Tokens:
		return fmt.Errorf("%d prompts of %d tokens", s.Prompts, s.Tokens)
	case len(s.Layers) != shape.Layers:
		return fmt.Errorf("it has %d layers, want %d", len(s.Layers), shape.Layers)
	case len(s.Chunks) < 1 || len(s.Chunks) > mostSplits:
		return fmt.Errorf("it has %d sizes of chunks, want 1 to %d", len(s.Chunks), mostSplits)
	}
	for i := range s.Layers {
		if err := s.Layers[i].check(shape, s.Tokens); err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
	}
	for i := range s.Chunks {
		x := &s.Chunks[i]
		if i > 0 && x.Size <= s.Chunks[i-1].Size {
			return fmt.Errorf("chunks of %d tokens follow those of %d", x.Size, s.Chunks[i-1].Size)
		}
		if err := x.check(shape, s, tallies); err != nil {
			return fmt.Errorf("chunks of %d tokens: %w", x.Size, err)
		}
	}
	return nil
}

func (l *Loads) check(shape experts.Shape, tokens int64) error {
	if len(l.Tokens) != shape.Experts {
		return fmt.Errorf("it has %d experts, want %d", len(l.Tokens), shape.Experts)
	}
	sum := int64(0)
	for e, n := range l.Tokens {
		if n < 0 || n > tokens {
			return fmt.Errorf("%d of %d tokens chose expert %d", n, tokens, e)
		}
		sum += n
	}
	if sum != tokens*int64(shape.Chosen) {
		return fmt.Errorf("%d tokens made %d choices of %d each", tokens, sum, shape.Chosen)
	}
	want := newLoads(l.Tokens)
	if !slices.Equal(l.Order, want.Order) {
		return fmt.Errorf("its order is not that of its experts' tokens")
	}
	if !(math.Abs(l.Imbalance-want.Imbalance) <= 1e-6*want.Imbalance) {
		return fmt.Errorf("its imbalance is %v, want %v", l.Imbalance, want.Imbalance)
	}
	return nil
}

func (x *Split) check(shape experts.Shape, s *Set, tallies *int) error {
	switch {
	case x.Size < 1 || x.Size > experts.MostChunk:
		return fmt.Errorf("the size is outside 1 to %d", experts.MostChunk)
	case x.Count < 1 || int64(x.Count) > s.Tokens || int64(x.Count)*int64(x.Size) < s.Tokens:
		return fmt.Errorf("%d of them for %d tokens", x.Count, s.Tokens)
	case len(x.Layers) != shape.Layers:
		return fmt.Errorf("it has %d layers, want %d", len(x.Layers), shape.Layers)
	}
	for i, layer := range x.Layers {
		if len(layer) != shape.Experts {
			return fmt.Errorf("layer %d: it has %d experts, want %d", i, len(layer), shape.Experts)
		}
		for e, list := range layer {
			if *tallies += len(list); *tallies > mostTallies {
				return fmt.Errorf("more than %d tallies in all", mostTallies)
			}
			if err := list.check(x, s.Layers[i].Tokens[e]); err != nil {
				return fmt.Errorf("layer %d, expert %d: %w", i, e, err)
			}
		}
	}
	return nil
}

func (t Tallies) check(x *Split, tokens int64) error {
	last, rows, chunks := int64(0), int64(0), int64(0)
	for _, at := range t {
		if at[0] <= last || at[0] > int64(x.Size) || at[1] < 1 || at[1] > int64(x.Count) {
			return fmt.Errorf("%d chunks of %d rows after those of %d", at[1], at[0], last)
		}
		last = at[0]
		rows, chunks = rows+at[0]*at[1], chunks+at[1]
	}
	if chunks > int64(x.Count) || rows != tokens {
		return fmt.Errorf("%d of %d chunks have %d rows, want %d", chunks, x.Count, rows, tokens)
	}
	return nil
}

// Sizes lists the sizes of the chunks that the set's tokens were counted in.
func (s *Set) Sizes() (list []int) {
	for i := range s.Chunks {
		list = append(list, s.Chunks[i].Size)
	}
	return list
}
