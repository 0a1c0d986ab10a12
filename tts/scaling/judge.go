package scaling

// Judge says how a verifier judges that writes critiques. Zero values are the verifier's own.
type Judge struct {
	Critiques   int      `json:"critiques,omitempty"`    // of each candidate, solution step or order of a pair; their scores are combined
	MaxTokens   int      `json:"max_tokens,omitempty"`   // of a critique; where they are spent, it is asked for its decision
	TotalTokens int      `json:"total_tokens,omitempty"` // of all critiques; 0: the server's limit of tokens
	Temperature *float32 `json:"temperature,omitempty"`
	Combine     Combine  `json:"combine,omitempty"`
}

// Combine makes one score of those of several critiques.
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

// read reads the settings of judge.
func (j *Judge) read(src Source) {
	src.Count("judge.critiques", &j.Critiques)
	src.Count("judge.max_tokens", &j.MaxTokens)
	src.Count("judge.total_tokens", &j.TotalTokens)
	var t float32
	if src.Temperature("judge.temperature", &t) {
		j.Temperature = &t
	}
	readName(src, "judge.combine", &j.Combine)
}

// validateJudge checks how critiques are asked for. That they are is for the verifier to say.
func (p *Plan) validateJudge(l *Limits) error {
	j := &p.Judge
	switch j.Combine {
	case "", CombineMean, CombineMajority:
	default:
		return Errorf(CodeValue, "judge.combine", "expected mean or majority, but got %.40q", string(j.Combine))
	}
	for _, c := range []struct {
		field   string
		v, most int
	}{{"judge.critiques", j.Critiques, MostCritiques}, {"judge.max_tokens", j.MaxTokens, MostCritiqueTokens}, {"judge.total_tokens", j.TotalTokens, l.Tokens}} {
		if c.v > c.most {
			return Errorf(CodeSearchLimit, c.field, "%d is more than the limit of %d", c.v, c.most)
		}
		if c.v < 0 {
			return Errorf(CodeValue, c.field, "%d is less than 1", c.v)
		}
	}
	if t := j.Temperature; t != nil && !(*t >= 0 && *t <= 100) {
		return Errorf(CodeValue, "judge.temperature", "%v is not in [0, 100]", *t)
	}
	return nil
}
