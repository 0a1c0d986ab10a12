package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// message is one of a conversation.
type message struct{ role, content string }

// The roles of messages, as chat templates know them.
const (
	roleSystem    = "system"
	roleUser      = "user"
	roleAssistant = "assistant"
)

// askOptions say whom to ask and how; commands in a chat change some.
type askOptions struct {
	url, key, name string // a server to ask instead of loading a model
	system         string
	temperature    float32
	topP           float32
	maxTokens      int
	seed           uint64
	scaling        string // a search's written form; empty: none
	temperatureSet bool   // the temperature was chosen, whatever the scaling
}

// checkTemperature reports one out of its range.
func checkTemperature(t float32) error {
	if !(t >= 0 && t <= 2) { // NaN is outside too
		return fmt.Errorf("%v is outside 0 to 2", t)
	}
	return nil
}

// samplingTemperature is not 0 for a search unless somebody chose that: candidates
// of the greedy answer would all be the same.
func (o *askOptions) samplingTemperature() float32 {
	if o.scaling != "" && !o.temperatureSet {
		return scaling.DefaultTemperature
	}
	return o.temperature
}

// answered is what is known when an answer is complete.
type answered struct {
	dropped int  // messages left out, the oldest, because the conversation no longer fits
	cut     bool // the answer ended at --max-tokens or at the context's end
}

// answerer answers conversations: with a model loaded here, or by a server.
type answerer interface {
	// answer streams the answer in pieces of text.
	answer(ctx context.Context, o *askOptions, conversation []message, emit func(string) error) (answered, error)
	// models names what use can change to.
	models(ctx context.Context) ([]string, error)
	// use answers with another model from now on; after an error with the same.
	use(ctx context.Context, name string) error
	// canSearch says why answers cannot be searched for by a plan, if so.
	canSearch(plan string) error
	// about names the model in use, and says a little about it.
	about() (name, words string)
	close() error
}

// answerStats is what `ask --json` prints.
type answerStats struct {
	Answer  string  `json:"answer"`
	Seconds float64 `json:"seconds"`
	TTFT    float64 `json:"ttft_ms"`
}

// maxQuestion bounds what is read as one question, in bytes.
const maxQuestion = 1 << 20

// opening begins a conversation with the system message, if any.
func (o *askOptions) opening() []message {
	if o.system == "" {
		return nil
	}
	return []message{{roleSystem, o.system}}
}

// askOnce prints the answer to one question while it comes, or as JSON when it is
// complete.
func askOnce(ctx context.Context, a answerer, o *askOptions, question string, w io.Writer, asJSON bool) error {
	var text strings.Builder
	var stats answerStats
	start := time.Now()
	_, err := a.answer(ctx, o, append(o.opening(), message{roleUser, question}), func(piece string) error {
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
