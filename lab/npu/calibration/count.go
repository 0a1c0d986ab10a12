package calibration

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/hexagon/experts"
)

// Counter counts what routers choose on one data set, prompt by prompt. It is told the
// choices of each layer in the order of a prompt's tokens, however these are cut into
// steps; layers may come in any order.
type Counter struct {
	shape   experts.Shape
	prompts int
	tokens  int64
	layers  []layerCount
	splits  []splitCount
}

// layerCount is a layer's, with how far it is in the prompt.
type layerCount struct {
	at     int
	tokens []int64 // [experts]
}

// splitCount is of chunks of one size.
type splitCount struct {
	size, count int
	open        [][]int32          // [layers][experts] rows of the chunk under way
	closed      []map[[2]int]int64 // [layers] chunks by expert and rows
}

// NewCounter counts for a model, in chunks of each of the sizes.
func NewCounter(shape experts.Shape, sizes []int) (*Counter, error) {
	if err := shape.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", experts.ErrOptions, err)
	}
	sizes = slices.Compact(slices.Sorted(slices.Values(sizes)))
	if len(sizes) < 1 || len(sizes) > mostSplits || sizes[0] < 1 || sizes[len(sizes)-1] > experts.MostChunk {
		return nil, fmt.Errorf("%w: chunks of %v tokens: want 1 to %d sizes of 1 to %d", experts.ErrOptions, sizes, mostSplits, experts.MostChunk)
	}
	c := &Counter{shape: shape, layers: make([]layerCount, shape.Layers)}
	for i := range c.layers {
		c.layers[i].tokens = make([]int64, shape.Experts)
	}
	for _, size := range sizes {
		s := splitCount{size: size, open: make([][]int32, shape.Layers), closed: make([]map[[2]int]int64, shape.Layers)}
		for i := range s.open {
			s.open[i], s.closed[i] = make([]int32, shape.Experts), map[[2]int]int64{}
		}
		c.splits = append(c.splits, s)
	}
	return c, nil
}

// Add counts the experts [rows][Chosen] of a layer for the next rows of the prompt.
func (c *Counter) Add(layer int, experts []int32) {
	l, k := &c.layers[layer], c.shape.Chosen
	for ; len(experts) >= k; experts = experts[k:] {
		for i := range c.splits {
			s := &c.splits[i]
			if l.at > 0 && l.at%s.size == 0 {
				s.end(layer)
			}
			for _, e := range experts[:k] {
				s.open[layer][e]++
			}
		}
		for _, e := range experts[:k] {
			l.tokens[e]++
		}
		l.at++
	}
}

// end closes a layer's chunk.
func (s *splitCount) end(layer int) {
	for e, n := range s.open[layer] {
		if n > 0 {
			s.closed[layer][[2]int{e, int(n)}]++
		}
	}
	clear(s.open[layer])
}

// End ends a prompt. It fails if layers have not all had the same tokens, and one at
// least.
func (c *Counter) End() error {
	n := c.layers[0].at
	for i := range c.layers {
		if c.layers[i].at != n || n == 0 {
			return fmt.Errorf("experts: layer %d had %d tokens of a prompt, and layer 0 %d", i, c.layers[i].at, n)
		}
		c.layers[i].at = 0
		for j := range c.splits {
			c.splits[j].end(i)
		}
	}
	c.prompts, c.tokens = c.prompts+1, c.tokens+int64(n)
	for i := range c.splits {
		c.splits[i].count += (n + c.splits[i].size - 1) / c.splits[i].size
	}
	return nil
}

// Set returns what was counted.
func (c *Counter) Set(name string) Set {
	set := Set{Name: name[:min(len(name), experts.MostName)], Prompts: c.prompts, Tokens: c.tokens}
	for i := range c.layers {
		set.Layers = append(set.Layers, newLoads(slices.Clone(c.layers[i].tokens)))
	}
	for i := range c.splits {
		s := &c.splits[i]
		split := Split{Size: s.size, Count: s.count}
		for _, closed := range s.closed {
			layer := make([]Tallies, c.shape.Experts)
			for at, n := range closed {
				layer[at[0]] = append(layer[at[0]], Tally{int64(at[1]), n})
			}
			for _, t := range layer {
				slices.SortFunc(t, func(a, b Tally) int { return cmp.Compare(a[0], b[0]) })
			}
			split.Layers = append(split.Layers, layer)
		}
		set.Chunks = append(set.Chunks, split)
	}
	return set
}

// New returns what was counted on data sets, with their overlaps.
func New(shape experts.Shape, sets []Set) (*Calibration, error) {
	c := &Calibration{Kind: Kind, Shape: shape, Sets: sets}
	c.Overlaps = c.overlaps()
	return c, c.Check()
}
