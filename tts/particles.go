package tts

import (
	"math"
	"slices"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// filterParticles goes on with solution steps in proportion to what the verifier makes of
// them (Puri et al. 2025, "A Probabilistic Inference Approach to Inference-Time Scaling of
// LLMs using Particle-Based Monte Carlo Methods", Algorithm 1, as its_hub carries it out).
// After each step the particles are drawn anew from all, complete ones and references too: one
// drawn several times is forked, one that is not drawn is dropped. It returns the particles at
// their end, closed; round counts the iterations before.
func (r *searchRun) filterParticles(beams, references []*beam, round int) ([]*beam, error) {
	open := beams
	defer func() {
		for _, b := range open {
			b.close()
		}
	}()
	last, first := round == r.plan.Particles.Iterations-1, round*r.plan.N/r.plan.Particles.Iterations
	for r.steps = 1; ; r.steps++ {
		live := unfinished([][]*beam{beams})
		if err := r.step(live, first); err != nil {
			return nil, err
		}
		if !last {
			remember(live)
		}
		cut := slices.ContainsFunc(live, func(b *beam) bool { return b.paused })
		if !cut && r.work.Err() == nil {
			var err error
			if beams, err = r.resample(beams, references, round); err != nil {
				return nil, err
			}
			open = beams
		}
		all := slices.Concat(beams, references)
		if err := r.reporter.stepReasoning(len(live), all); err != nil {
			return nil, err
		}
		live = distinct(unfinished([][]*beam{beams}))
		if r.reason = r.stopReason(len(live), cut); len(live) == 0 || r.reason != StopComplete || r.work.Err() != nil {
			return all, nil
		}
		if last { // before, all begin anew
			if err := r.reporter.commit(all); err != nil {
				return nil, err
			}
		}
		if err := r.reporter.update(len(live)); err != nil {
			return nil, err
		}
		var err error
		if beams, err = r.copyDrawn(beams); err != nil {
			return nil, err
		}
		open = beams
	}
}

// resample draws as many particles as there are beams, and closes those that are not drawn.
func (r *searchRun) resample(beams, references []*beam, round int) ([]*beam, error) {
	all := slices.Concat(beams, references)
	drawn := make([]*beam, len(beams))
	for i, at := range drawParticles(&r.plan.Particles, r.req.Sampling.Seed, round, r.steps, len(beams), scoresOf(all)) {
		drawn[i] = all[at]
	}
	for _, b := range beams {
		if !slices.Contains(drawn, b) {
			r.tree.nodes[b.node].Fate = FatePruned
			b.close()
		}
	}
	return drawn, r.cutBack(drawn, references)
}

func scoresOf(beams []*beam) []float32 {
	scores := make([]float32, len(beams))
	for i, b := range beams {
		scores[i] = b.cand.Score
	}
	return scores
}

// drawParticles returns the indices of n particles, drawn after a solution step, or, with step 0, as
// references at the end of a round. They depend on these numbers alone.
func drawParticles(set *scaling.Particles, seed uint64, round, step, n int, scores []float32) []int {
	weights := make([]float64, len(scores))
	for i, s := range scores {
		weights[i] = logit(float64(s))
	}
	how, temperature := set.Resampling, set.Temperature
	if step == 0 {
		how, temperature = scaling.Multinomial, 1
	}
	seed = sampling.Mix(sampling.Mix(seed+resampling) + uint64(round)<<32 + uint64(step))
	return draw(softmax(weights, temperature), n, how, func(i int) float64 {
		return float64(sampling.Mix(seed+uint64(i))>>11) / (1 << 53)
	})
}

// resampling sets its random numbers apart from those of tokens.
const resampling = 0x7061727469636c65

// copyDrawn puts forks in the places of live particles that were drawn more than once. There
// are fewer where memory does not suffice.
func (r *searchRun) copyDrawn(beams []*beam) ([]*beam, error) {
	live, shared := distinct(unfinished([][]*beam{beams})), 0
	for _, b := range live {
		shared += len(b.cand.IDs)
	}
	wanted := len(unfinished([][]*beam{beams}))
	spare := max(r.fits(wanted, shared, r.tree.longest), len(live)) - len(live) // copies that there is room for
	counts := make([]int, len(live))
	for i, b := range live {
		for _, c := range beams {
			if c == b && (counts[i] == 0 || spare > 0) {
				if counts[i]++; counts[i] > 1 {
					spare--
				}
			}
		}
	}
	forks := make([][]*beam, len(live))
	err := parallel.Each(live, func(i int, b *beam) (err error) {
		forks[i], err = r.fork(b, counts[i])
		return err
	})
	var next []*beam
	for _, b := range beams {
		i := slices.Index(live, b)
		switch {
		case i < 0:
			next = append(next, b)
		case len(forks[i]) > 0:
			next = append(next, forks[i][0])
			forks[i] = forks[i][1:]
		}
	}
	return next, err
}

// retireAll makes a candidate of each particle: those drawn several times have as many votes.
func (r *searchRun) retireAll(beams []*beam) {
	retired := map[*beam]bool{}
	for _, b := range beams {
		one := b
		if retired[b] {
			one = b.copyTo(b.seq, b.judge)
		}
		retired[b] = true
		r.retire(one)
	}
}

// distinct returns beams without repeats.
func distinct(beams []*beam) []*beam {
	var out []*beam
	for _, b := range beams {
		if !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

// draw returns the indices of n particles by their shares, which add up to 1. uniform returns
// the i-th random number in [0, 1).
func draw(shares []float64, n int, how scaling.Resampling, uniform func(i int) float64) []int {
	sums, sum := make([]float64, len(shares)), 0.0
	for i, p := range shares {
		sum += p
		sums[i] = sum
	}
	drawn := make([]int, n)
	for i := range drawn {
		at := 0.0
		if how == scaling.Systematic {
			at = (float64(i) + uniform(0)) / float64(n) * sum
		} else {
			at = uniform(i) * sum
		}
		drawn[i], _ = slices.BinarySearchFunc(sums[:len(sums)-1], at, func(s, at float64) int {
			if s > at {
				return 1
			}
			return -1
		})
	}
	return drawn
}

// logit returns the log-weight of a score in [0, 1], as far from both ends as its_hub keeps.
func logit(score float64) float64 {
	const least = 1e-7
	score = min(max(score, least), 1-least)
	return math.Log(score / (1 - score))
}

// softmax returns weights as shares of their sum, at a temperature.
func softmax(x []float64, temperature float64) []float64 {
	best, sum := slices.Max(x), 0.0
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = math.Exp((v - best) / temperature)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}
