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
// After each step all particles, complete ones too, are drawn anew: a particle drawn several
// times is forked, one that is not drawn is dropped.
func (r *searchRun) filterParticles() error {
	beams, err := r.fork(r.root, r.fits(r.plan.N, 0, 0))
	if err != nil {
		return err
	}
	defer func() {
		for _, b := range beams {
			b.close()
		}
	}()
	for r.steps = 1; ; r.steps++ {
		live := unfinished([][]*beam{beams})
		if err := r.step(live, 0); err != nil {
			return err
		}
		cut := slices.ContainsFunc(live, func(b *beam) bool { return b.paused })
		if !cut && r.work.Err() == nil {
			beams = r.resample(beams)
		}
		if err := r.reporter.stepReasoning(len(live), beams); err != nil {
			return err
		}
		live = distinct(unfinished([][]*beam{beams}))
		if r.reason = r.stopReason(len(live), cut); len(live) == 0 || r.reason != StopComplete || r.work.Err() != nil {
			r.retireAll(beams)
			return nil
		}
		if err := r.reporter.commit(beams); err != nil {
			return err
		}
		if err := r.reporter.update(len(live)); err != nil {
			return err
		}
		if beams, err = r.copyDrawn(beams); err != nil {
			return err
		}
	}
}

// resample draws as many particles as there are, and closes those that are not drawn.
func (r *searchRun) resample(beams []*beam) []*beam {
	scores := make([]float32, len(beams))
	for i, b := range beams {
		scores[i] = b.cand.Score
	}
	drawn := make([]*beam, len(beams))
	for i, at := range drawParticles(&r.plan.Particles, r.req.Sampling.Seed, r.steps, scores) {
		drawn[i] = beams[at]
	}
	for _, b := range beams {
		if !slices.Contains(drawn, b) {
			r.tree.nodes[b.node].Fate = FatePruned
			b.close()
		}
	}
	return drawn
}

// drawParticles returns the indices of the particles that are drawn after a solution step. They depend on
// seed, step and scores alone.
func drawParticles(set *scaling.Particles, seed uint64, step int, scores []float32) []int {
	weights := make([]float64, len(scores))
	for i, s := range scores {
		weights[i] = logit(float64(s))
	}
	seed = sampling.Mix(sampling.Mix(seed+resampling) + uint64(step))
	return draw(softmax(weights, set.Temperature), set.Resampling, func(i int) float64 {
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

// draw returns the indices of as many particles as there are shares, which add up to 1.
// uniform returns the i-th random number in [0, 1).
func draw(shares []float64, how scaling.Resampling, uniform func(i int) float64) []int {
	n := len(shares)
	sums, sum := make([]float64, n), 0.0
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
		drawn[i], _ = slices.BinarySearchFunc(sums[:n-1], at, func(s, at float64) int {
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
