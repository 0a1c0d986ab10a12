package soc

import (
	"cmp"
	"slices"
)

// Cost is modelled time: the seconds that each unit is busy, and what passes until the
// end. Whoever shows one calls it modelled.
type Cost struct {
	Seconds float64 `json:"seconds"`
	DMA     float64 `json:"dma"`
	Vector  float64 `json:"hvx"`
	Tiles   float64 `json:"hmx"`
	Host    float64 `json:"host,omitempty"`
	Joules  float64 `json:"joules"`
	// Useful is the share of the tile unit's rows that are not padding; 0: it had none.
	Useful float64 `json:"useful_rows,omitempty"`
}

// Add adds a cost that comes after c.
func (c *Cost) Add(d Cost) {
	if total := c.Tiles + d.Tiles; total > 0 {
		c.Useful = (c.Useful*c.Tiles + d.Useful*d.Tiles) / total
	}
	c.Seconds += d.Seconds
	c.DMA += d.DMA
	c.Vector += d.Vector
	c.Tiles += d.Tiles
	c.Host += d.Host
	c.Joules += d.Joules
}

// times multiplies the cost: n such things, one after the other.
func (c Cost) times(n int) Cost {
	f := float64(n)
	return Cost{c.Seconds * f, c.DMA * f, c.Vector * f, c.Tiles * f, c.Host * f, c.Joules * f, c.Useful}
}

// Bound names the unit that is busy longest.
func (c Cost) Bound() string {
	units := []struct {
		name    string
		seconds float64
	}{{"DMA", c.DMA}, {"HVX", c.Vector}, {"HMX", c.Tiles}, {"CPU", c.Host}}
	return slices.MaxFunc(units, func(a, b struct {
		name    string
		seconds float64
	}) int {
		return cmp.Compare(a.seconds, b.seconds)
	}).name
}

func (c *Cost) overlapped() Cost {
	c.Seconds = max(c.DMA, c.Vector, c.Tiles)
	return *c
}
