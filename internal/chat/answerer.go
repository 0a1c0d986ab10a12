package chat

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts"
)

// Message is one message of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Calls   []Call `json:"tool_calls,omitempty"`   // of tools, by the assistant
	CallID  string `json:"tool_call_id,omitempty"` // of the call that a tool's message answers
}

// The roles of messages, as chat templates know them.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Piece is a part of an answer as it comes: of its text, or of the thought before it.
type Piece struct{ Text, Thought string }

// Options say what answers and how; commands in a chat change some.
type Options struct {
	URL, Key, Model string // a server to ask instead of loading a model
	System          string
	Sampling        sampling.Config // what it names; the rest is the model's default, or a search's
	Stop            []string
	MaxTokens       *int // of an answer at most, 0: up to the context; nil: MostTokens, and 0 in a search
	Seed            uint64
	Scaling         string          // a search's written form; empty: none
	Candidates      bool            // Answered has the candidates of a search
	Thinking        *bool           // switched on or off; nil: as the chat template has it
	Schema          json.RawMessage // that answers are held to; nil: none
	Tools           []Tool          // that the model may call
}

// builtIn returns what holds for the models that are built in, which know arithmetic alone: their
// likeliest answer is the best, unless a search looks among several.
func (o *Options) builtIn() sampling.Config {
	if o.Scaling != "" {
		return sampling.Config{}
	}
	return sampling.Config{Temperature: new(float32(0))}
}

// MostTokens bounds answers by default: a person does not wait for the end of a long context.
// Candidates of a search may think for longer, and are bounded together.
const MostTokens = 1024

// most returns how many tokens an answer may have; 0: up to the context.
func (o *Options) most() int {
	switch {
	case o.MaxTokens != nil:
		return *o.MaxTokens
	case o.Scaling != "":
		return 0
	}
	return MostTokens
}

// loops ends an answer that says the same again: eight times 8 to 64 tokens, of which shorter
// patterns come more often. Small models go on to the end of the context otherwise.
var loops = tts.Repetition{MinPattern: 8, MaxPattern: 64, MinCount: 8}

// opening begins a conversation with the system message, if any.
func (o *Options) opening() []Message {
	if o.System == "" {
		return nil
	}
	return []Message{{Role: RoleSystem, Content: o.System}}
}

// Answered describes a complete answer.
type Answered struct {
	Model   string // that answered
	Finish  string // why the answer ended, in OpenAI's words; empty: the server did not say
	Dropped int    // oldest messages left out because the conversation no longer fits
	Usage   Usage
	Search  *Search // nil: there was none
	Calls   []Call  // of tools
}

// ended says why an answer has no end; empty: it has one. more names what allows more tokens.
func (a *Answered) ended(o *Options, more string) string {
	switch most := o.most(); {
	case a.Finish == string(tts.FinishRepetition):
		return "(ended: the answer repeated itself)"
	case a.Finish != string(tts.FinishLength):
		return ""
	case most > 0 && a.Usage.Completion >= most:
		return fmt.Sprintf("(cut off after %d tokens; %s allows more)", most, more)
	}
	return "(cut off: the context is used up)"
}

// Usage counts the tokens of an answer.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`         // of all candidates
	Verifier   int `json:"verifier_tokens,omitempty"` // that a verifier read of these
	Critiques  int `json:"critique_tokens,omitempty"` // that it wrote of them
}

// Search describes the search behind an answer.
type Search struct {
	Method     string      `json:"-"`
	N          int         `json:"n"`
	Width      int         `json:"width,omitempty"`
	StopReason string      `json:"stop_reason"`
	Agreement  float64     `json:"agreement"` // share of the candidates that give the same answer
	Score      float64     `json:"score"`     // of the candidate chosen
	Candidates []Candidate `json:"-"`         // if they were wanted
}

// Candidate is one of the answers that a search chose among.
type Candidate struct {
	Text   string  `json:"text"`
	Answer string  `json:"answer"` // extracted; empty: none found
	Score  float64 `json:"score"`
	Votes  int     `json:"votes"`
	Tokens int     `json:"tokens"`
	Finish string  `json:"finish_reason"` // empty: it was given up
	Chosen bool    `json:"chosen"`
}

// Answerer answers conversations: with a model loaded here, or by a server.
type Answerer interface {
	// Answer streams the answer in pieces of text.
	Answer(ctx context.Context, o *Options, conversation []Message, emit func(Piece) error) (Answered, error)
	// Models are the names that Use takes.
	Models(ctx context.Context) ([]string, error)
	// Use changes the model. After an error the former one answers.
	Use(ctx context.Context, name string) error
	// Greedy reports whether an answer by o is the likeliest one, the same each time.
	Greedy(o *Options) bool
	// CanSearch says why a search plan cannot be carried out; nil: it can.
	CanSearch(plan string) error
	// About is the name of the model in use and a short description.
	About() (name, words string)
	Close() error
}
