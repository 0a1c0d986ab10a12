package chat

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Message is one message of a conversation.
type Message struct{ Role, Content string }

// The roles of messages, as chat templates know them.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Options say what answers and how; commands in a chat change some.
type Options struct {
	URL, Key, Model string // a server to ask instead of loading a model
	System          string
	Temperature     float32
	TopP            float32
	MaxTokens       int
	Seed            uint64
	TemperatureSet  bool   // somebody chose Temperature; else a search takes its own
	Scaling         string // a search's written form; empty: none
	Thinking        *bool  // switched on or off; nil: as the chat template has it
}

// CheckTemperature checks the range of a temperature.
func CheckTemperature(t float32) error {
	if !(t >= 0 && t <= 2) { // NaN is outside too
		return fmt.Errorf("%v is outside 0 to 2", t)
	}
	return nil
}

// samplingTemperature is not 0 for a search unless somebody chose that: greedy
// candidates would all be equal.
func (o *Options) samplingTemperature() float32 {
	if o.Scaling != "" && !o.TemperatureSet {
		return scaling.DefaultTemperature
	}
	return o.Temperature
}

// Answered describes a complete answer.
type Answered struct {
	Dropped int  // oldest messages left out because the conversation no longer fits
	Cut     bool // the answer ended at --max-tokens or at the context's end
}

// Answerer answers conversations: with a model loaded here, or by a server.
type Answerer interface {
	// Answer streams the answer in pieces of text.
	Answer(ctx context.Context, o *Options, conversation []Message, emit func(string) error) (Answered, error)
	// Models are the names that Use takes.
	Models(ctx context.Context) ([]string, error)
	// Use changes the model. After an error the former one answers.
	Use(ctx context.Context, name string) error
	// CanSearch says why a search plan cannot be carried out; nil: it can.
	CanSearch(plan string) error
	// About is the name of the model in use and a short description.
	About() (name, words string)
	Close() error
}

// Stats is what `ask --json` prints.
type Stats struct {
	Answer  string  `json:"answer"`
	Seconds float64 `json:"seconds"`
	TTFT    float64 `json:"ttft_ms"`
}

// MaxQuestion bounds what is read as one question, in bytes.
const MaxQuestion = 1 << 20

// opening begins a conversation with the system message, if any.
func (o *Options) opening() []Message {
	if o.System == "" {
		return nil
	}
	return []Message{{RoleSystem, o.System}}
}

// Ask streams the answer to one question to w, or prints it as JSON when it is
// complete.
func Ask(ctx context.Context, a Answerer, o *Options, question string, w io.Writer, asJSON bool) error {
	var text strings.Builder
	var stats Stats
	start := time.Now()
	_, err := a.Answer(ctx, o, append(o.opening(), Message{RoleUser, question}), func(piece string) error {
		if text.Len() == 0 {
			stats.TTFT = 1000 * time.Since(start).Seconds()
		}
		text.WriteString(piece)
		if asJSON {
			return nil
		}
		_, err := io.WriteString(w, output.ForTerminal(w, piece))
		return err
	})
	if err != nil {
		if text.Len() > 0 && !asJSON {
			fmt.Fprintln(w) // the error begins a line of its own
		}
		return err
	}
	if asJSON {
		stats.Answer, stats.Seconds = text.String(), time.Since(start).Seconds()
		return output.JSON(w, stats)
	}
	_, err = fmt.Fprintln(w)
	return err
}
