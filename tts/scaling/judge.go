package scaling

// Judge says how a verifier judges that writes critiques. Zero values are the verifier's own.
type Judge struct {
	Critiques   int // of each candidate, solution step or order of a pair; their scores are combined
	MaxTokens   int // of a critique; where they are spent, it is asked for its decision
	TotalTokens int // of all critiques; 0: the server's limit of tokens
	Temperature *float32
	Combine     Combine
}

// Combine makes one score of several critiques' scores.
type Combine string

// The ways to combine.
const (
	CombineMean     Combine = "mean"     // of their scores
	CombineMajority Combine = "majority" // each has one vote, for what it finds likeliest
)

// The bounds of critiques.
const (
	MostCritiques      = 16
	MostCritiqueTokens = 4096
)

// validateJudge checks how critiques are asked for. That they are is for the verifier to say.
func (p *Plan) validateJudge(l *Limits) error {
	j := &p.Judge
	for _, c := range []struct {
		field   string
		v, most int
	}{{"judge.critiques", j.Critiques, MostCritiques}, {"judge.max_tokens", j.MaxTokens, MostCritiqueTokens}, {"judge.total_tokens", j.TotalTokens, l.Tokens}} {
		if c.v > c.most {
			return Errorf(CodeSearchLimit, c.field, "%d is more than the limit of %d", c.v, c.most)
		}
	}
	if t := j.Temperature; t != nil && !(*t >= 0 && *t <= 100) {
		return Errorf(CodeValue, "judge.temperature", "%v is not in [0, 100]", *t)
	}
	return nil
}
