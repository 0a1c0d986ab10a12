package batcher

import "time"

// pace learns how long a step of so many tiles takes and tells how many tiles
// fit a time. It fits time = fixed + slope·tiles by exponentially weighted
// least squares, so it follows contexts that grow and machines that slow down.
// While all steps have been of one size the slope is unknown, and time is
// taken to be proportional, which errs on the side of the streams.
type pace struct {
	target time.Duration // 0: any number of tiles fits

	n        int
	x, y     float64 // weighted means: tiles, seconds
	cxx, cxy float64 // weighted variance and covariance
}

// forget is the weight of a new measurement.
const forget = 0.1

// observe takes in one step.
func (p *pace) observe(lanes int, took time.Duration) {
	x, y := float64(lanes)/Tile, took.Seconds()
	if p.n++; p.n == 1 {
		p.x, p.y = x, y
		return
	}
	dx, dy := x-p.x, y-p.y
	p.x += forget * dx
	p.y += forget * dy
	if dx > 0.5 || dx < -0.5 { // steps of the usual size must not wash out the slope
		p.cxx = (1 - forget) * (p.cxx + forget*dx*dx)
		p.cxy = (1 - forget) * (p.cxy + forget*dx*dy)
	}
}

// slope is the time of one more tile in seconds.
func (p *pace) slope() float64 {
	most := p.y / p.x // no negative fixed part
	if p.cxx == 0 {
		return most
	}
	return min(most, max(p.cxy/p.cxx, most/64))
}

// lanes is the largest step expected to keep the target, at most limit; less
// than a tile becomes 0.
func (p *pace) lanes(limit int) int {
	if p.target == 0 || p.n == 0 || p.y <= 0 {
		return limit
	}
	tiles := p.x + (p.target.Seconds()-p.y)/p.slope()
	return max(0, min(limit, int(min(tiles, float64(limit)))*Tile))
}
