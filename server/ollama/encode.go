package ollama

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// encoder writes answers of /api/chat or /api/generate, which have one choice.
type encoder struct {
	api.Choices // of those that are streamed too, where conversation needs them
	model       string
	chat        bool
	logprobs    bool
	begun       time.Time
	report      *report.Search
	calls       []toolcall.Call // under way: they are sent whole
	end         tts.End

	// conversation gives the tokens of a conversation with this answer, which a later
	// request may go on from; nil: answers do not say them.
	conversation func(text, reasoning string) []int32
}

// answer is a line, or a whole answer.
type answer struct {
	Model     string   `json:"model"`
	CreatedAt string   `json:"created_at"`
	Message   *message `json:"message,omitempty"`  // of chats
	Response  *string  `json:"response,omitempty"` // of others
	Thinking  string   `json:"thinking,omitempty"` // of others
	Done      bool     `json:"done"`
	Reason    string   `json:"done_reason,omitempty"`
	Context   []int32  `json:"context,omitempty"` // of others, on the last line
	*spent
	Logprobs any `json:"logprobs,omitempty"`          // []logprob; in a whole answer a place for them
	Scaling  any `json:"test_time_scaling,omitempty"` // Lutra's own
}

// logprob is a token with its log-probability and the likeliest ones in its place.
type logprob struct {
	alternative
	Top []alternative `json:"top_logprobs,omitempty"`
}

type alternative struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes,omitempty"`
}

func newAlternative(piece []byte, value float32) alternative {
	return alternative{strings.ToValidUTF8(string(piece), "\ufffd"), jsonwrite.Finite(value), jsonwrite.ByteList(piece)}
}

func newLogprob(t *tts.Token) logprob {
	l := logprob{alternative: newAlternative(t.Bytes, t.Logprob)}
	for _, a := range t.Top {
		l.Top = append(l.Top, newAlternative(a.Bytes, a.Logprob))
	}
	return l
}

type message struct {
	Role     string `json:"role"`
	Content  string `json:"content"`
	Thinking string `json:"thinking,omitempty"`
	Calls    []call `json:"tool_calls,omitempty"`
}

type call struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Index     int             `json:"index"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// spent has the counts and times, in nanoseconds, of the last line. The time until the model was free for the
// request stands for its loading, which was long before.
type spent struct {
	Total        int64 `json:"total_duration"`
	Load         int64 `json:"load_duration"`
	PromptTokens int   `json:"prompt_eval_count"`
	Prompt       int64 `json:"prompt_eval_duration"`
	Tokens       int   `json:"eval_count"`
	Eval         int64 `json:"eval_duration"`
}

func (s *encoder) spent(d *tts.End, u tts.Usage) *spent {
	return &spent{
		Total: time.Since(s.begun).Nanoseconds(), Load: d.Timing.Queue.Nanoseconds(), PromptTokens: u.Prompt, Prompt: d.Timing.Prefill.Nanoseconds(),
		Tokens: u.Completion, Eval: d.Timing.Decode.Nanoseconds(),
	}
}

// reason returns why an answer ended.
func reason(f tts.Finish) string {
	if f.Cut() {
		return "length"
	}
	return "stop"
}

// line returns an answer with text.
func (s *encoder) line(text, thinking string, calls []toolcall.Call) *answer {
	a := &answer{Model: s.model, CreatedAt: time.Now().UTC().Format(time.RFC3339Nano)}
	if !s.chat {
		a.Response, a.Thinking = &text, thinking
		return a
	}
	a.Message = &message{Role: fields.RoleAssistant, Content: text, Thinking: thinking}
	for _, c := range calls {
		w := call{ID: c.ID}
		w.Function.Index, w.Function.Name, w.Function.Arguments = c.Index, c.Name, c.Object()
		a.Message.Calls = append(a.Message.Calls, w)
	}
	return a
}

func (s *encoder) Collect(e tts.Event) {
	s.report.Update(e)
	s.Choices.Collect(e)
}

func (s *encoder) Full(p *jsonwrite.Reply, u tts.Usage) {
	c := s.List[0]
	a := s.last(s.line(c.Text(), c.Reasoning(), c.Calls), &c.End, u)
	if !s.logprobs {
		p.Value(a)
		return
	}
	a.Logprobs = json.RawMessage("[]")
	tokens := tts.Said(c.Tokens)
	p.Filled(a, "logprobs", len(tokens), func(i int) { p.Value(newLogprob(&tokens[i])) })
}

// last completes the last line of an answer, or the only one.
func (s *encoder) last(a *answer, end *tts.End, u tts.Usage) *answer {
	a.Done, a.Reason, a.spent, a.Scaling = true, reason(end.Finish), s.spent(end, u), s.report.Answer()
	if s.conversation != nil {
		a.Context = s.conversation(s.List[0].Text(), s.List[0].Reasoning())
	}
	return a
}

// Event has calls wait until they are whole.
func (s *encoder) Event(e tts.Event) any {
	if s.conversation != nil {
		s.Choices.Collect(e)
	}
	if now := s.report.Update(e); now != nil {
		a := s.line("", "", nil)
		a.Scaling = now
		return a
	}
	switch w := e.What.(type) {
	case tts.Text:
		var list []logprob
		if s.logprobs {
			for _, t := range tts.Said(w.Tokens) {
				list = append(list, newLogprob(&t))
			}
		}
		if w.Text == "" && list == nil {
			return nil
		}
		a := s.line(w.Text, "", nil)
		if list != nil {
			a.Logprobs = list
		}
		return a
	case tts.Reasoning:
		return s.line("", string(w), nil)
	case tts.Calls:
		var whole []toolcall.Call
		for i := range w {
			if w[i].Index == len(s.calls) {
				whole = s.calls[max(0, len(s.calls)-1):]
			}
			s.calls = toolcall.Join(s.calls, &w[i])
		}
		return s.called(whole)
	case tts.End:
		s.end = w
		return s.called(s.calls[max(0, len(s.calls)-1):])
	}
	return nil
}

// called returns a line with calls, if there are any.
func (s *encoder) called(calls []toolcall.Call) any {
	if len(calls) == 0 {
		return nil
	}
	return s.line("", "", calls)
}

func (s *encoder) KeepAlive() any { return s.line("", "", nil) }

func (s *encoder) End(u tts.Usage, fault *api.Fault) any {
	if fault != nil {
		return failure(fault, "")
	}
	return s.last(s.line("", "", nil), &s.end, u)
}

// said returns the answer to a request without a prompt: clients load models so, and unload them.
func (s *encoder) said(reason string) any {
	a := s.line("", "", nil)
	a.Done, a.Reason = true, reason
	return a
}

// failure writes a fault as Ollama's clients expect it, whole or as a line.
func failure(f *api.Fault, _ string) any {
	return struct {
		Error string `json:"error"`
	}{f.Message}
}
