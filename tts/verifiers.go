package tts

import "github.com/lutra-lm/lutra/tts/scaling"

// Verifiers are the scorers that plans can name.
type Verifiers struct {
	Default string // for plans that name none; empty: there is none
	ByName  map[string]Scorer
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
		if p.Method.Beams() {
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
