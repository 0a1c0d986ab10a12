package tts

import (
	"slices"

	"github.com/lutra-lm/lutra/internal/parallel"
)

// lookAhead gives each beam the score that it comes to when it is continued greedily by up to
// Plan.Lookahead solution steps (Snell et al. 2024, §5.2, "lookahead search"). What is written
// so is charged and dropped. A beam for which there is no room keeps its own score.
func (r *searchRun) lookAhead(beams []*beam, first int) error {
	if r.plan.Lookahead == 0 {
		return nil
	}
	beams = slices.DeleteFunc(slices.Clone(beams), func(b *beam) bool { return complete(b) || b.paused })
	shared := 0
	for _, b := range beams {
		shared += len(b.cand.IDs)
	}
	beams = beams[:max(0, r.fits(2*len(beams), shared, r.tree.longest)-len(beams))]
	ahead := make([]*beam, len(beams))
	err := parallel.Each(beams, func(i int, b *beam) error {
		forks, err := r.fork(b, 2)
		if len(forks) > 1 {
			ahead[i] = forks[1]
			ahead[i].partial = nil // nobody is to see it
		}
		return err
	})
	defer func() {
		for _, a := range ahead {
			if a != nil {
				a.close()
			}
		}
	}()
	if err != nil {
		return err
	}
	live := slices.DeleteFunc(slices.Clone(ahead), func(a *beam) bool { return a == nil })
	for range r.plan.Lookahead {
		live = slices.DeleteFunc(live, func(a *beam) bool { return complete(a) || a.paused })
		r.aim(live, first, false)
		for _, a := range live {
			a.params.Temperature = 0
		}
		if err := r.extend(r.work, live, func(*beam) error { return nil }); err != nil {
			return err
		}
		if err := r.scoreAll(live); err != nil {
			return err
		}
	}
	for i, a := range ahead {
		if a == nil {
			continue
		}
		r.tree.charged += len(a.cand.IDs) - len(beams[i].cand.IDs)
		a.judge.Charge()
		if !a.paused {
			beams[i].cand.Score = a.cand.Score
			r.note(beams[i])
		}
	}
	return nil
}
