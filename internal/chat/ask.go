package chat

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/internal/output"
)

// Stats is the object that `ask --json` prints.
type Stats struct {
	Answer     string      `json:"answer"`
	Reasoning  string      `json:"reasoning,omitempty"` // the thought before it
	Calls      []Call      `json:"tool_calls,omitempty"`
	Model      string      `json:"model"`
	Finish     string      `json:"finish_reason"`
	Seconds    float64     `json:"seconds"`
	TTFT       float64     `json:"ttft_ms"`
	Usage      Usage       `json:"usage"`
	Method     string      `json:"method"`           // single without a search
	Search     *Search     `json:"search,omitempty"` // likewise none
	Candidates []Candidate `json:"candidates,omitempty"`
}

// MaxQuestion bounds what is read as one question, in bytes.
const MaxQuestion = 1 << 20

// single is the method of an answer without a search.
const single = "single"

// Ask streams the answer to one question to w, or prints it as JSON when it is
// complete. What there is to know of the answer goes to notes, unless JSON has it. Calls of
// tools are printed as JSON, and not made.
func Ask(ctx context.Context, a Answerer, o *Options, question string, w, notes io.Writer, asJSON bool) error {
	var text, thought strings.Builder
	var stats Stats
	start := time.Now()
	asked := *o
	asked.Candidates = asJSON
	shown := screen{w: w, terminal: output.IsTerminal(w)}
	done, err := a.Answer(ctx, &asked, append(o.opening(), Message{Role: RoleUser, Content: question}), func(p Piece) error {
		if text.Len()+thought.Len() == 0 {
			stats.TTFT = 1000 * time.Since(start).Seconds()
		}
		text.WriteString(p.Text)
		thought.WriteString(p.Thought)
		if asJSON {
			return nil
		}
		return shown.write(p)
	})
	if err != nil {
		if !asJSON {
			_ = shown.end(false) // the error begins a line of its own
		}
		return err
	}
	if asJSON {
		stats.Answer, stats.Reasoning, stats.Calls = text.String(), thought.String(), done.Calls
		stats.Model, stats.Finish, stats.Usage = done.Model, done.Finish, done.Usage
		stats.Seconds, stats.Method = time.Since(start).Seconds(), single
		if s := done.Search; s != nil {
			stats.Method, stats.Search, stats.Candidates = s.Method, s, s.Candidates
		}
		return output.JSON(w, stats)
	}
	if err := shown.end(len(done.Calls) == 0); err != nil {
		return err
	}
	if len(done.Calls) > 0 {
		if err := output.JSON(w, done.Calls); err != nil {
			return err
		}
	}
	if why := done.ended(o, "--max-tokens"); why != "" {
		fmt.Fprintln(notes, why)
	}
	if s := done.Search; s != nil {
		fmt.Fprintf(notes, "(%s)\n", s)
	}
	return nil
}

// String says in words what was searched, as in "beam_search of 16, width 4: 100 %
// agree, score 0.97".
func (s *Search) String() string {
	how := fmt.Sprintf("%s of %d", s.Method, s.N)
	if s.Width > 0 {
		how += fmt.Sprintf(", width %d", s.Width)
	}
	return fmt.Sprintf("%s: %.0f %% agree, score %.2f", how, 100*s.Agreement, s.Score)
}
