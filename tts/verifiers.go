package tts

import (
	"iter"

	"github.com/lutra-lm/lutra/tts/scaling"
)

// Verifiers are the scorers that plans can name.
type Verifiers struct {
	Default string // for plans that name none; empty: there is none
	ByName  map[string]Scorer
}

// VerifiersFor are those of the named reward models that can judge what m
// writes. The first one is the default.
func VerifiersFor(m *Model, rewards iter.Seq2[string, *Reward]) Verifiers {
	v := Verifiers{ByName: map[string]Scorer{}}
	for name, reward := range rewards {
		if !reward.Reads(m) {
			continue
		}
		v.ByName[name] = reward
		if v.Default == "" {
			v.Default = name
		}
	}
	return v
}

// resolve returns the scorer that a plan asks for, and whether it is more than
// the generator's own score.
func (v *Verifiers) resolve(p *scaling.Plan) (s Scorer, verified bool, err error) {
	name := p.Verifier
	if name == "" && (p.Method != scaling.SelfConsistency || p.Select == scaling.SelectWeightedVote) {
		name = v.Default
	}
	switch name {
	case "":
		if p.Method == scaling.BeamSearch || p.Method == scaling.DVTS {
			return nil, false, scaling.Errorf(scaling.CodeVerifierRequired, "verifier", "%s needs a verifier, and this server has no default one", p.Method)
		}
		return ByLogprob(), false, nil
	case scaling.VerifierLogprob:
		return ByLogprob(), true, nil
	case scaling.VerifierSelfCertainty:
		return BySelfCertainty(), true, nil
	}
	if s = v.ByName[name]; s == nil {
		return nil, false, scaling.Errorf(scaling.CodeVerifierNotFound, "verifier", "there is no verifier %.80q", name)
	}
	return s, true, nil
}
