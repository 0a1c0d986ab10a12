package admission

import "sync/atomic"

// Places bounds the number of requests under way.
type Places struct {
	most  int64
	taken atomic.Int64
}

// NewPlaces returns n places.
func NewPlaces(most int) *Places { return &Places{most: int64(most)} }

// Enter takes a place until leave is called, or returns ErrBusy.
func (p *Places) Enter() (leave func(), err error) {
	if p.taken.Add(1) > p.most {
		p.taken.Add(-1)
		return nil, ErrBusy
	}
	return func() { p.taken.Add(-1) }, nil
}

// Full tells whether Enter would fail.
func (p *Places) Full() bool { return p.taken.Load() >= p.most }

// Taken returns the number of requests under way.
func (p *Places) Taken() int64 { return p.taken.Load() }
