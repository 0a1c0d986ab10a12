// Package receipt says of an answer what it was computed from and with, so that another
// replica can compute it again: Builder makes a receipt while an answer is made, Read
// takes one from a file, Repeat makes the request that asks for the same, and Compare
// finds where two answers part.
//
// A receipt is a claim and no signature: who doubts it computes it again.
package receipt

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Version is that of the receipts that this program writes and reads.
const Version = 1

// Receipt is the member "receipt" of an answer.
type Receipt struct {
	Version  int    `json:"version"`
	Endpoint string `json:"endpoint"` // that was asked, such as /v1/chat/completions
	// Request is the body's text as it was received; empty in a receipt of hashes alone.
	Request  string   `json:"request,omitempty"`
	Hash     string   `json:"request_sha256"` // of the body's bytes
	Model    Model    `json:"model"`
	Kernels  string   `json:"kernels"` // the family whose kernels give these bits
	Build    Build    `json:"build"`
	Sampling Sampling `json:"sampling"`
	Search   *Search  `json:"search,omitempty"`
	// Prompts are what the model read: the chat template may write the date.
	Prompts []Prompt `json:"prompts"`
	Choices []Choice `json:"choices"`
	// Candidates are all those of the searches, best first.
	Candidates []Choice `json:"candidates,omitempty"`
}

// Model is what wrote the answer.
type Model struct {
	Name     string    `json:"name"`
	SHA256   string    `json:"sha256"`             // of the file: weights, tokenizer and template
	Metadata string    `json:"metadata,omitempty"` // a hash of what the configuration gives in place of the file's
	Packing  string    `json:"packing"`            // what the layers' matrices run as
	Adapters []Adapter `json:"adapters,omitempty"` // in the order in which they add
	KV       string    `json:"kv"`                 // format of keys and values
	Context  int       `json:"context"`            // tokens of prompt and answer at most
}

// Base returns the model's name without that of an adapter that it was asked for by.
func (m *Model) Base() string {
	if len(m.Adapters) == 1 {
		return strings.TrimSuffix(m.Name, ":"+m.Adapters[0].Name)
	}
	return m.Name
}

// Adapter is a LoRA that changes the model.
type Adapter struct {
	Name   string  `json:"name"`
	SHA256 string  `json:"sha256"` // of the file
	Scale  float32 `json:"scale"`
}

// Build is the program.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // since that revision
	Go       string `json:"go"`
}

// Prompt is one prompt's tokens.
type Prompt struct {
	Tokens int    `json:"tokens"`
	Hash   string `json:"sha256"` // of the token ids, as of a Choice
}

// Sampling is how tokens were drawn, with all defaults. What is left out is in the
// request alone.
type Sampling struct {
	Seed              Seed    `json:"seed"`
	N                 int     `json:"n"`
	Temperature       float32 `json:"temperature"`
	TopP              float32 `json:"top_p"`
	TopK              int     `json:"top_k"`
	MinP              float32 `json:"min_p"`
	TypicalP          float32 `json:"typical_p"`
	RepetitionPenalty float32 `json:"repetition_penalty"`
	RepetitionWindow  int     `json:"repeat_last_n"`
	PresencePenalty   float32 `json:"presence_penalty"`
	FrequencyPenalty  float32 `json:"frequency_penalty"`
	MaxTokens         int     `json:"max_tokens"` // 0: up to the context's end
	MinTokens         int     `json:"min_tokens"`
	MaxThinking       int     `json:"thinking_token_budget"` // 0: no bound
}

// Seed is written as a string: tools that read numbers as float64 would round it.
type Seed uint64

// Search is what chose among candidates.
type Search struct {
	// Plan is what is in force, as the field test_time_scaling of a request has it.
	Plan     json.RawMessage `json:"plan"`
	Verifier *Model          `json:"verifier,omitempty"` // a reward model
	Probe    *Probe          `json:"probe,omitempty"`    // that reads the model's states
	Stopped  []string        `json:"stop_reasons"`       // of each prompt's search
	Chosen   bool            `json:"chosen,omitempty"`   // plan and model were, for a quality or a deadline
	Degraded bool            `json:"degraded,omitempty"` // for want of memory: a larger pool has other candidates
}

// Probe is the file that a verifier of a model's own states was read from.
type Probe struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// plan is a search plan in JSON.
type plan struct {
	Method      scaling.Method    `json:"method"`
	N           int               `json:"n"`
	Width       int               `json:"width,omitempty"`
	MaxSteps    int               `json:"max_steps,omitempty"`
	Step        planStep          `json:"step,omitzero"`
	Verifier    string            `json:"verifier,omitempty"`
	Verify      *scaling.Verify   `json:"verify,omitempty"`
	Aggregate   scaling.Aggregate `json:"aggregate,omitempty"`
	Select      scaling.Select    `json:"select"`
	Answer      planAnswer        `json:"answer,omitzero"`
	Temperature *float32          `json:"temperature,omitempty"`
	EarlyStop   any               `json:"early_stop,omitempty"` // a bool, or planStop
	scaling.MethodSettings
	Budget planBudget `json:"budget"`
}

type (
	planStep struct {
		Stop      []string `json:"stop,omitempty"`
		Members   bool     `json:"members,omitempty"`
		MaxTokens int      `json:"max_tokens,omitempty"`
	}
	planAnswer struct {
		Extract   string `json:"extract,omitempty"`
		Normalize string `json:"normalize,omitempty"`
	}
	planStop struct {
		Consensus float64 `json:"consensus"`
	}
	planBudget struct {
		Tokens int   `json:"tokens"`
		Time   int64 `json:"time_ms"`
	}
)

// NewPlan writes p with all that is in force. How it is reported is left out.
func NewPlan(p *scaling.Plan) json.RawMessage {
	out := plan{Method: p.Method, N: p.N, Width: p.Width, MaxSteps: p.MaxSteps, Step: planStep(p.Step), Verifier: p.Verifier,
		Aggregate: p.Aggregate, Select: p.Select, Answer: planAnswer{p.Answer.Extract, p.Answer.Normalize}, Temperature: p.Temperature,
		MethodSettings: p.MethodSettings(), Budget: planBudget{p.Budget.Tokens, p.Budget.Time.Milliseconds()}}
	if p.Verify.Kind() != "" {
		out.Verify = &p.Verify
	}
	switch {
	case p.EarlyStop.Off:
		out.EarlyStop = false
	case p.EarlyStop.Consensus > 0:
		out.EarlyStop = planStop{p.EarlyStop.Consensus}
	}
	text, err := json.Marshal(out)
	if err != nil {
		panic(err) // numbers that Validate lets through, and texts
	}
	return text
}

// Choice is one choice of an answer, or a candidate of a search.
type Choice struct {
	Index     int    `json:"index"`               // among the choices, or the candidates of its prompt
	Candidate *int   `json:"candidate,omitempty"` // of a choice: its index among these
	Prompt    int    `json:"prompt,omitempty"`    // of a candidate, whose request has several
	Tokens    int    `json:"tokens"`              // generated, with the one that ended it
	Hash      string `json:"tokens_sha256"`       // of the token ids, 4 bytes each, the lowest first
	// IDs are those tokens; none in a receipt of hashes alone.
	IDs    []int32   `json:"token_ids,omitempty"`
	Text   string    `json:"text_sha256,omitempty"` // of a choice: of its text as the answer has it
	Finish string    `json:"finish_reason,omitempty"`
	Score  *float32  `json:"score,omitempty"`       // of a search
	Steps  []float32 `json:"step_scores,omitempty"` // of a candidate
}

// NewSampling describes how the choices of a request are sampled.
func NewSampling(req *tts.Request) Sampling {
	p := &req.Sampling
	s := Sampling{Seed: Seed(p.Seed), N: max(req.N, 1), Temperature: p.Temperature, TopP: p.TopP, TopK: p.TopK, MinP: p.MinP, TypicalP: p.TypicalP,
		RepetitionPenalty: p.RepetitionPenalty, RepetitionWindow: p.RepetitionWindow, PresencePenalty: p.PresencePenalty, FrequencyPenalty: p.FrequencyPenalty,
		MaxTokens: p.MaxTokens, MinTokens: req.MinTokens, MaxThinking: req.MaxThinking}
	if s.RepetitionPenalty == 0 { // off
		s.RepetitionPenalty = 1
	}
	if s.TypicalP == 0 {
		s.TypicalP = 1
	}
	if s.TopP <= math.SmallestNonzeroFloat32 { // what a request writes as 0
		s.TopP = 0
	}
	return s
}

// MarshalText writes the seed in decimal.
func (s Seed) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(s), 10), nil }
