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
	if d.Useful > 0 {
		c.Useful = (c.Useful*c.Tiles + d.Useful*d.Tiles) / max(c.Tiles+d.Tiles, 1e-12)
	}
	c.Seconds += d.Seconds
	c.DMA += d.DMA
	c.Vector += d.Vector
	c.Tiles += d.Tiles
	c.Host += d.Host
	c.Joules += d.Joules
}

// less returns the cost without a part of it.
func (c Cost) less(d Cost) Cost {
	return Cost{c.Seconds - d.Seconds, c.DMA - d.DMA, c.Vector - d.Vector, c.Tiles - d.Tiles, c.Host - d.Host, c.Joules - d.Joules, c.Useful}
}

// times multiplies the cost.
func (c Cost) times(f float64) Cost {
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
