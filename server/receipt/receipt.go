// Package receipt describes how an answer was computed, so that another replica can compute it again. Builder
// makes a receipt along with an answer, Read takes one from a file, Repeat makes the request that asks for the
// same, and Compare finds where two answers part.
//
// A receipt is a claim and no signature: a doubter computes it again.
package receipt

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts"
)

// maxChoices bounds the choices of an answer, as many as a server may allow. The other bounds of
// what Read takes are tags; a file's size is the caller's to bound.
const maxChoices = 1 << 12

// Version is the version of the receipts that this program writes and reads.
const Version = 1

// Receipt is the member "receipt" of an answer.
type Receipt struct {
	Version  int    `json:"version"`
	Endpoint string `json:"endpoint"` // that was asked, such as /v1/chat/completions
	// Request is the body's text as it was received; empty in a receipt of hashes alone.
	Request  string   `json:"request,omitempty" long:""`
	Hash     string   `json:"request_sha256" sha256:""` // of the body's bytes
	Model    Model    `json:"model"`
	Kernels  string   `json:"kernels"` // the family whose kernels give these bits
	Build    Build    `json:"build"`
	Sampling Sampling `json:"sampling"`
	Search   *Search  `json:"search,omitempty"`
	// Prompts are the model's, since the chat template may write the date.
	Prompts []Prompt `json:"prompts" max:"4096"`
	Choices []Choice `json:"choices" max:"4096"`
	// Candidates come from all searches, best first.
	Candidates []Choice `json:"candidates,omitempty" max:"65536"`
}

// Model describes the model that wrote the answer.
type Model struct {
	Name     string    `json:"name"`
	SHA256   string    `json:"sha256" sha256:""`              // of the file: weights, tokenizer and template
	Metadata string    `json:"metadata,omitempty"`            // a hash of what the configuration gives in place of the file's
	Packing  string    `json:"packing"`                       // what the layers' matrices run as
	Adapters []Adapter `json:"adapters,omitempty" max:"4096"` // in the order in which they add
	KV       string    `json:"kv"`                            // format of keys and values
	Context  int       `json:"context"`                       // tokens of prompt and answer at most
}

// Base returns the model's name without the name of an adapter.
func (m *Model) Base() string {
	if len(m.Adapters) == 1 {
		return strings.TrimSuffix(m.Name, ":"+m.Adapters[0].Name)
	}
	return m.Name
}

// Adapter is a LoRA that changes the model.
type Adapter struct {
	Name   string  `json:"name"`
	SHA256 string  `json:"sha256" sha256:""` // of the file
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
	Hash   string `json:"sha256" sha256:""` // of the token ids, as of a Choice
}

// Sampling has the settings by which tokens were drawn, with all defaults. Of Params there are the seed,
// MaxTokens, 0 for up to the context's end, and sampling.Fields; the rest is in the request alone.
type Sampling struct {
	N           int
	MinTokens   int
	MaxThinking int // 0: no bound
	sampling.Params
}

// whole are the numbers of a Sampling that sampling.Fields has not, by their names in JSON.
func (s *Sampling) whole() []whole {
	return []whole{{"n", &s.N, 1, maxChoices}, {"max_tokens", &s.MaxTokens, 0, math.MaxInt32}, {"min_tokens", &s.MinTokens, 0, math.MaxInt32}, {"thinking_token_budget", &s.MaxThinking, 0, math.MaxInt32}}
}

type whole struct {
	name   string
	value  *int
	lo, hi int
}

// MarshalJSON writes the seed as a string: tools that read numbers as float64 would round it.
func (s Sampling) MarshalJSON() ([]byte, error) {
	out := fmt.Appendf(nil, `{"seed":"%d"`, s.Seed)
	for _, w := range s.whole() {
		out = fmt.Appendf(out, ",%q:%d", w.name, *w.value)
	}
	for i := range sampling.Fields {
		out = sampling.Fields[i].Append(out, &s.Params)
	}
	return append(out, '}'), nil
}

// Search describes the choice among candidates.
type Search struct {
	// Plan is the plan in force, in the form of a request's field test_time_scaling.
	Plan     json.RawMessage `json:"plan" max:"65536"`
	Verifier *Model          `json:"verifier,omitempty"`      // a reward model
	Probe    *Probe          `json:"probe,omitempty"`         // that reads the model's states
	Stopped  []string        `json:"stop_reasons" max:"4096"` // of each prompt's search
	Chosen   bool            `json:"chosen,omitempty"`        // plan and model were, for a quality or a deadline
	Degraded bool            `json:"degraded,omitempty"`      // for want of memory: a larger pool has other candidates
}

// Probe is the file that a verifier of a model's own states was read from.
type Probe struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Choice is one choice of an answer, or a candidate of a search.
type Choice struct {
	Index     int    `json:"index" max:"65536"`               // among the choices, or the candidates of its prompt
	Candidate *int   `json:"candidate,omitempty" max:"65536"` // of a choice: its index among these
	Prompt    int    `json:"prompt,omitempty" max:"4096"`     // of a candidate, whose request has several
	Tokens    int    `json:"tokens" max:"4194304"`            // generated, with the one that ended it
	Hash      string `json:"tokens_sha256" sha256:""`         // of the token ids, 4 bytes each, the lowest first
	// IDs are the ids of these tokens; none in a receipt of hashes alone.
	IDs    []int32   `json:"token_ids,omitempty" max:"4194304"`
	Text   string    `json:"text_sha256,omitempty" sha256:""` // of a choice: of its text as the answer has it
	Finish string    `json:"finish_reason,omitempty"`
	Score  *float32  `json:"score,omitempty"`                  // of a search
	Steps  []float32 `json:"step_scores,omitempty" max:"4096"` // of a candidate
}

// NewSampling describes how the choices of a request are sampled.
func NewSampling(req *tts.Request) Sampling {
	s := Sampling{N: max(req.N, 1), MinTokens: req.MinTokens, MaxThinking: req.MaxThinking, Params: sampling.Params{Seed: req.Sampling.Seed, MaxTokens: req.Sampling.MaxTokens}}
	for i := range sampling.Fields {
		sampling.Fields[i].Copy(&s.Params, &req.Sampling)
	}
	return s
}
