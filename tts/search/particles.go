package search

import (
	"math"
	"slices"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

func init() {
	methods[scaling.ParticleFiltering] = methodRow{start: startParticles, choose: func(bool) scaling.Select { return scaling.SelectMax }}
}

// particles goes on with solution steps in proportion to the verifier's scores (Puri et al. 2025, "A
// Probabilistic Inference Approach to Inference-Time Scaling of LLMs using Particle-Based Monte Carlo
// Methods", Algorithm 1, as in its_hub), in as many iterations as the plan says. In each but the first,
// some particles of the one before take part as references. They stay as they are, and may be drawn up to
// the step that the others have reached (§3.3, particle Gibbs). The last iteration's particles are the
// candidates.
type particles struct {
	run        *searchRun
	set        *scaling.Particles
	round      int     // iterations before
	references []*beam // closed
	// past holds particles as they were at the end of each of their solution steps, without sequence and judge.
	past map[*beam][]*beam
}

func startParticles(r *searchRun) method {
	return &particles{run: r, set: &r.plan.Particles, past: map[*beam][]*beam{}}
}

func (p *particles) grow(r *searchRun) (tts.StopReason, error) {
	for ; ; p.round++ {
		free, err := r.grow.forkRoot(r.grow.fits(r.plan.N/p.set.Iterations-len(p.references), 0, 0), p.set.Iterations > 1)
		if err != nil {
			return tts.StopComplete, err
		}
		all, reason, err := p.filter(free)
		if err != nil {
			return reason, err
		}
		if p.last() || reason != tts.StopComplete || r.work.Err() != nil || r.grow.root == nil {
			p.retire(all)
			return reason, nil
		}
		p.references = make([]*beam, p.set.References)
		for i, at := range drawParticles(p.set, r.req.Sampling.Seed, p.round, 0, p.set.References, scoresOf(all)) {
			p.references[i] = all[at]
		}
	}
}

// last tells whether the iteration is the last one.
func (p *particles) last() bool { return p.round == p.set.Iterations-1 }

// filter carries out one iteration. After each solution step the particles are drawn anew from all,
// complete ones and references too: one drawn several times is forked, one that is not drawn is
// dropped. It returns the particles at their end, closed.
func (p *particles) filter(beams []*beam) (all []*beam, reason tts.StopReason, err error) {
	r := p.run
	open := beams
	defer func() {
		for _, b := range open {
			b.close()
		}
	}()
	first := p.round * r.plan.N / p.set.Iterations
	for r.steps = 1; ; r.steps++ {
		live := unfinished([][]*beam{beams})
		if err := r.step(live, first); err != nil {
			return nil, tts.StopComplete, err
		}
		if !p.last() {
			p.remember(live)
		}
		cut := slices.ContainsFunc(live, func(b *beam) bool { return b.paused })
		if !cut && r.work.Err() == nil {
			if beams, err = p.resample(beams); err != nil {
				return nil, tts.StopComplete, err
			}
			open = beams
		}
		all = slices.Concat(beams, p.references)
		if err := r.report.stepReasoning(len(live), all); err != nil {
			return nil, tts.StopComplete, err
		}
		live = distinct(unfinished([][]*beam{beams}))
		if reason = r.stopReason(len(live), cut); len(live) == 0 || reason != tts.StopComplete || r.work.Err() != nil {
			return all, reason, nil
		}
		if p.last() { // before, all begin anew
			if err := r.report.commit(all); err != nil {
				return nil, tts.StopComplete, err
			}
		}
		if err := r.report.update(len(live)); err != nil {
			return nil, tts.StopComplete, err
		}
		if beams, err = p.copyDrawn(beams); err != nil {
			return nil, tts.StopComplete, err
		}
		open = beams
	}
}

// resample draws as many particles as there are beams, and closes those that are not drawn.
func (p *particles) resample(beams []*beam) ([]*beam, error) {
	r := p.run
	all := slices.Concat(beams, p.references)
	drawn := make([]*beam, len(beams))
	for i, at := range drawParticles(p.set, r.req.Sampling.Seed, p.round, r.steps, len(beams), scoresOf(all)) {
		drawn[i] = all[at]
	}
	for _, b := range beams {
		if !slices.Contains(drawn, b) {
			r.tree.prune(b)
			delete(p.past, b)
		}
	}
	return drawn, p.cutBack(drawn)
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

// resampling keeps its random numbers apart from the tokens'.
const resampling = 0x7061727469636c65

// copyDrawn puts forks in the places of live particles that were drawn more than once. There
// are fewer where memory does not suffice.
func (p *particles) copyDrawn(beams []*beam) ([]*beam, error) {
	r := p.run
	live, shared := distinct(unfinished([][]*beam{beams})), 0
	for _, b := range live {
		shared += len(b.cand.IDs)
	}
	wanted := len(unfinished([][]*beam{beams}))
	room := max(r.grow.fits(wanted, shared, r.tree.longest), len(live)) - len(live) // copies that there is room for
	counts := make([]int, len(live))
	for i, b := range live {
		for _, c := range beams {
			if c == b && (counts[i] == 0 || room > 0) {
				if counts[i]++; counts[i] > 1 {
					room--
				}
			}
		}
	}
	forks := make([][]*beam, len(live))
	err := parallel.Each(live, func(i int, b *beam) (err error) {
		forks[i], err = r.grow.fork(b, counts[i])
		return err
	})
	for i, b := range live {
		for _, fork := range forks[i] {
			p.past[fork] = p.past[b]
		}
	}
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

// retire makes a candidate of each particle: those drawn several times have as many votes.
func (p *particles) retire(beams []*beam) {
	retired := map[*beam]bool{}
	for _, b := range beams {
		one := b
		if retired[b] {
			one = b.copyTo(b.seq, b.judge)
		}
		retired[b] = true
		p.run.tree.retire(one)
	}
}

// remember keeps what particles are now, so that they can be cut back to it. What they gain
// later is appended beyond it.
func (p *particles) remember(beams []*beam) {
	for _, b := range beams {
		now, cand := *b, *b.cand
		cand.IDs, cand.Tokens, cand.StepScores = slices.Clip(cand.IDs), slices.Clip(cand.Tokens), slices.Clip(cand.StepScores)
		now.cand, now.dec, now.shape, now.text = &cand, b.dec.Clone(), b.shape.clone(), slices.Clip(b.text)
		now.seq, now.judge, now.partial = nil, nil, nil
		p.past[b] = append(slices.Clip(p.past[b]), &now)
	}
}

// cutBack puts copies of references, as far as this iteration has come, in the places where
// longer ones were drawn.
func (p *particles) cutBack(drawn []*beam) error {
	for _, ref := range distinct(p.references) {
		past := p.past[ref]
		if len(past) <= p.run.steps || !slices.Contains(drawn, ref) {
			continue
		}
		short, err := p.restore(past[:p.run.steps])
		if err != nil {
			return err
		}
		for i, b := range drawn {
			if b == ref && short != nil {
				drawn[i] = short
			}
		}
	}
	return nil
}

// restore returns a beam as it was at the end of its past; nil where there is no room for it.
// Its sequence and what its verifier has read are computed again, and charged once.
func (p *particles) restore(past []*beam) (*beam, error) {
	r := p.run
	forks, err := r.grow.fork(r.grow.root, 2)
	if len(forks) < 2 || err != nil {
		return nil, err
	}
	was, fork := past[len(past)-1], forks[1]
	b := was.copyTo(fork.seq, fork.judge)
	p.past[b] = past
	b.seq.Adopt(b.cand.IDs...)
	read := &beam{judge: b.judge, cand: &tts.Candidate{IDs: b.cand.IDs, Text: b.cand.Text, Logprob: b.cand.Logprob, Certainty: b.cand.Certainty}}
	if err := r.grow.score(r.work, read); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
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
