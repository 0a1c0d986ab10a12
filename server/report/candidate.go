package report

import "github.com/lutra-lm/lutra/tts"

// FinishReason returns null until there is one.
func FinishReason(f tts.Finish) *string {
	if f == "" {
		return nil
	}
	s := string(f)
	return &s
}

// Candidate is one of a search's answers. Choices have their text in the choice.
type Candidate struct {
	Candidate    int        `json:"candidate"`
	Text         string     `json:"text,omitempty"`
	FinishReason *string    `json:"finish_reason,omitempty"`
	Tokens       int        `json:"tokens"`
	Score        float64    `json:"score"`
	Logprob      float64    `json:"logprob"` // mean over the tokens
	Answer       *string    `json:"answer"`  // null: none was found
	Votes        int        `json:"votes"`
	StepScores   []float64  `json:"step_scores"`
	Verdict      string     `json:"verdict,omitempty"` // of a check, or of critiques
	Critiques    []Critique `json:"critiques,omitempty"`
	Confidence   float64    `json:"confidence,omitempty"` // of deepconf
	Filtered     bool       `json:"filtered,omitempty"`   // likewise
	Steps        []Step     `json:"steps,omitempty"`
}

// Critique has the words and the score that a verifier has written of a candidate or a solution step.
type Critique struct {
	Step   int     `json:"step,omitempty"` // solution steps that it judges
	Score  float64 `json:"score"`
	Labels []bool  `json:"labels,omitempty"` // whether it finds each solution step right
	Tokens int     `json:"tokens"`
	Text   string  `json:"text"`
}

// Step is a part of a candidate that is scored and competes.
type Step struct {
	Text   string  `json:"text"`
	Tokens int     `json:"tokens"`
	Score  float64 `json:"score"`
}

// Usage divides the tokens of a search: the first two add up to the
// completion's; nobody is charged for the last.
type Usage struct {
	Chosen    int `json:"chosen_tokens"`
	Discarded int `json:"discarded_tokens"`
	Verifier  int `json:"verifier_tokens"`
	Critiques int `json:"critique_tokens,omitempty"` // that a verifier wrote
	Cancelled int `json:"cancelled_tokens"`
}
