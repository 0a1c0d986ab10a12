package planning

import (
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/lab/npu/calibration"
)

// Space has the settings that Weigh chooses from; an empty list stands for all that it knows.
type Space struct {
	Chunks     []int // sizes that the calibration has
	GroupSizes []int // 4, 8 and 16
	Sizings    []Sizing
	// MostOverflow is the share of rows that may overflow. The paper loses at most
	// 1.1 % of answers with 10.6 to 21.8 % (NPUMoE, Table 3).
	MostOverflow float64
}

// MostOverflow is the share that is allowed unless asked otherwise.
const MostOverflow = 0.10

// complete fills in the empty lists.
func (s Space) complete(set *calibration.Set, experts int) Space {
	if len(s.Chunks) == 0 {
		s.Chunks = set.Sizes()
	}
	if len(s.GroupSizes) == 0 { // the paper's
		for _, g := range []int{4, 8, 16} {
			if g = min(g, experts); !slices.Contains(s.GroupSizes, g) {
				s.GroupSizes = append(s.GroupSizes, g)
			}
		}
	}
	if len(s.Sizings) == 0 {
		s.Sizings = Sizings()
	}
	return s
}

// Weigh makes all plans of the space for o, whose Chunk, GroupSize and Sizing it sets. On their front no other plan has less
// padding, launches, overflow or rows on the CPU and not more of another. Of the plans on it with no more overflow than allowed
// it chooses the one of the least modelled cost; if there is none, the one of the least overflow.
func Weigh(c *calibration.Calibration, o Options, s Space) (*experts.Plan, error) {
	if !(s.MostOverflow >= 0 && s.MostOverflow <= 1) {
		return nil, fmt.Errorf("%w: an overflow of %v is outside 0 to 1", experts.ErrOptions, s.MostOverflow)
	}
	s = s.complete(&c.Sets[0], o.Shape.Experts)
	if n := len(s.Chunks) * len(s.GroupSizes) * len(s.Sizings); n > experts.MostChoices {
		return nil, fmt.Errorf("%w: %d plans to choose from, more than %d", experts.ErrOptions, n, experts.MostChoices)
	}
	var plans []*experts.Plan
	var choices []experts.Choice
	for _, o.Chunk = range s.Chunks {
		for _, o.GroupSize = range s.GroupSizes {
			for _, o.Sizing = range s.Sizings {
				p, err := New(c, o)
				if err != nil {
					return nil, err
				}
				plans, choices = append(plans, p), append(choices, p.Choice)
			}
		}
	}
	front := markFront(choices)
	best := choose(choices, s.MostOverflow)
	p := plans[best]
	p.Choice, p.Others = choices[best], choices
	switch {
	case len(plans) == 1:
		p.Why = "it was asked for"
	case p.Choice.Overflow > s.MostOverflow:
		p.Why = fmt.Sprintf("of %d plans, %d of them on the front, none has at most %.3g %% overflow, and it has the least", len(plans), front, 100*s.MostOverflow)
	default:
		p.Why = fmt.Sprintf("of %d plans, %d of them on the front, it has the least modelled cost with at most %.3g %% overflow", len(plans), front, 100*s.MostOverflow)
	}
	if p.Choice.Launches == 0 {
		p.Why += "; all experts are the CPU's, for the reasons that their groups have"
	}
	return p, nil
}

// dominates tells whether choice c is better than d in one respect and worse in none.
func dominates(c, d *experts.Choice) bool {
	a, b := respects(c), respects(d)
	better := false
	for i := range a {
		if a[i] > b[i] {
			return false
		}
		better = better || a[i] < b[i]
	}
	return better
}

func respects(c *experts.Choice) [4]float64 {
	return [4]float64{c.Launches, c.Padding, c.Overflow, c.Host}
}

// markFront marks and counts the choices that no other one dominates.
func markFront(list []experts.Choice) (n int) {
	for i := range list {
		list[i].Front = !slices.ContainsFunc(list, func(d experts.Choice) bool { return dominates(&d, &list[i]) })
		if list[i].Front {
			n++
		}
	}
	return n
}

// choose returns the index of the choice on the front that Weigh promises.
func choose(list []experts.Choice, most float64) int {
	best := -1
	for i := range list {
		c := &list[i]
		if !c.Front {
			continue
		}
		if best < 0 || before(c, &list[best], most) {
			best = i
		}
	}
	return best
}

// rounding is the largest difference between sums of equal plans.
const rounding = 1e-9

// before tells whether c is to be preferred; of equal choices the first one is.
func before(c, d *experts.Choice, most float64) bool {
	if fits := c.Overflow <= most; fits != (d.Overflow <= most) {
		return fits
	} else if fits {
		return c.Cost < d.Cost*(1-rounding)
	}
	return c.Overflow < d.Overflow*(1-rounding)
}
