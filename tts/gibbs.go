package tts

import "slices"

// sampleParticles filters particles, in as many iterations as the plan says. In each but the
// first, some particles of the one before take part as references: they stay as they are, and
// may be drawn, as far as the others have come (Puri et al. 2025, §3.3, particle Gibbs, as
// its_hub carries it out). The last iteration's particles are the candidates.
func (r *searchRun) sampleParticles() error {
	set := &r.plan.Particles
	var references []*beam
	for round := range set.Iterations {
		free, err := r.forkRoot(r.fits(r.plan.N/set.Iterations-len(references), 0, 0), set.Iterations > 1)
		if err != nil {
			return err
		}
		all, err := r.filterParticles(free, references, round)
		if err != nil {
			return err
		}
		if round == set.Iterations-1 || r.reason != StopComplete || r.work.Err() != nil || r.root == nil {
			r.retireAll(all)
			return nil
		}
		references = make([]*beam, set.References)
		for i, at := range drawParticles(set, r.req.Sampling.Seed, round, 0, set.References, scoresOf(all)) {
			references[i] = all[at]
		}
	}
	return nil
}

// remember keeps what particles are now, so that they can be cut back to it. What they gain
// later is appended beyond it.
func remember(beams []*beam) {
	for _, b := range beams {
		now, cand := *b, *b.cand
		cand.IDs, cand.Tokens, cand.StepScores = slices.Clip(cand.IDs), slices.Clip(cand.Tokens), slices.Clip(cand.StepScores)
		now.cand, now.dec, now.shape, now.text = &cand, b.dec.clone(), b.shape.clone(), slices.Clip(b.text)
		now.seq, now.judge, now.partial, now.past = nil, nil, nil, nil
		b.past = append(slices.Clip(b.past), &now)
	}
}

// cutBack puts copies of references, as far as this iteration has come, in the places where
// longer ones were drawn.
func (r *searchRun) cutBack(drawn, references []*beam) error {
	for _, ref := range distinct(references) {
		if len(ref.past) <= r.steps || !slices.Contains(drawn, ref) {
			continue
		}
		short, err := r.restore(ref.past[:r.steps])
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
func (r *searchRun) restore(past []*beam) (*beam, error) {
	forks, err := r.fork(r.root, 2)
	if len(forks) < 2 || err != nil {
		return nil, err
	}
	was, fork := past[len(past)-1], forks[1]
	b := was.copyTo(fork.seq, fork.judge)
	b.past = past
	b.seq.Adopt(b.cand.IDs...)
	read := &beam{judge: b.judge, cand: &Candidate{IDs: b.cand.IDs, Text: b.cand.Text, Logprob: b.cand.Logprob, Certainty: b.cand.Certainty}}
	if err := r.score(r.work, read); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}
