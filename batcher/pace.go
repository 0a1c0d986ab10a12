package batcher

import (
	"time"

	"github.com/lutra-lm/lutra/batcher/schedule"
)

// pace records how fast an engine is: the cost of its steps, and the work in them.
type pace struct {
	cost     schedule.CostModel
	load     workload
	slowdown float64 // Options.BackgroundSlowdown
}

// background returns the seconds that rows more background sequences need for a token each.
//
// Beside streams they advance in the steps that these have earned credit for. A step with streams alone takes alone
// seconds and earns the part of it that the slowdown is above 1. A step with all costs the credit that it takes longer.
func (p *pace) background(rows int) float64 {
	all := p.cost.Time(p.load.streams + p.load.background + rows)
	if p.load.streams == 0 || p.slowdown == 0 {
		return all
	}
	alone := p.cost.Time(p.load.streams)
	earned := alone * (p.slowdown - 1)
	return all + alone*max(0, (all-alone)/earned-1)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
