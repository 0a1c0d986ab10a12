package ollama

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// Shape writes answers of /api/chat or /api/generate, which have one choice.
type Shape struct {
	model    string
	chat     bool
	logprobs bool
	begun    time.Time
	calls    []toolcall.Call // under way: they are sent whole
	end      tts.Delta

	// Conversation gives the tokens of a conversation with this answer, which a later
	// request may go on from; nil: answers do not say them.
	Conversation    func(text, reasoning string) []int32
	said, reasoning strings.Builder // where it is needed
}

// NewShape writes the answer of a model, as a message for a chat, with log-probabilities
// or not.
func NewShape(model string, chat, logprobs bool) *Shape {
	return &Shape{model: model, chat: chat, logprobs: logprobs, begun: time.Now()}
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
	Logprobs any `json:"logprobs,omitempty"` // []logprob; in a whole answer a place for them
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

// answerTokens are tokens without the one that ended the answer.
func answerTokens(tokens []tts.Token) []tts.Token {
	if n := len(tokens); n > 0 && tokens[n-1].End {
		return tokens[:n-1]
	}
	return tokens
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

// spent is what the last line says: times are in nanoseconds. Models are loaded long
// before; the time until this one was free for the request stands for that.
type spent struct {
	Total        int64 `json:"total_duration"`
	Load         int64 `json:"load_duration"`
	PromptTokens int   `json:"prompt_eval_count"`
	Prompt       int64 `json:"prompt_eval_duration"`
	Tokens       int   `json:"eval_count"`
	Eval         int64 `json:"eval_duration"`
}

func (s *Shape) spent(d *tts.Delta, u tts.Usage) *spent {
	return &spent{
		Total: time.Since(s.begun).Nanoseconds(), Load: d.Timing.Queue.Nanoseconds(), PromptTokens: u.Prompt, Prompt: d.Timing.Prefill.Nanoseconds(),
		Tokens: u.Completion, Eval: d.Timing.Decode.Nanoseconds(),
	}
}

// reason is why an answer ended.
func reason(f tts.Finish) string {
	if f == tts.FinishLength {
		return "length"
	}
	return "stop"
}

// line is an answer with text.
func (s *Shape) line(text, thinking string, calls []toolcall.Call) *answer {
	a := &answer{Model: s.model, CreatedAt: time.Now().UTC().Format(time.RFC3339Nano)}
	if !s.chat {
		a.Response, a.Thinking = &text, thinking
		return a
	}
	a.Message = &message{Role: roleAssistant, Content: text, Thinking: thinking}
	for _, c := range calls {
		w := call{ID: c.ID}
		w.Function.Index, w.Function.Name, w.Function.Arguments = c.Index, c.Name, json.RawMessage(c.Arguments)
		if !json.Valid(w.Function.Arguments) { // it was cut off
			w.Function.Arguments = json.RawMessage("{}")
		}
		a.Message.Calls = append(a.Message.Calls, w)
	}
	return a
}

// Open takes nothing from a run's first delta.
func (s *Shape) Open(tts.Delta) {}

// Lines says that answers are streamed as lines.
func (s *Shape) Lines() bool { return true }

// Whole writes an answer.
func (s *Shape) Whole(p *jsonwrite.Reply, choices []tts.Delta, u tts.Usage) {
	d := &choices[0]
	a := s.line(d.Text, d.Reasoning, d.Calls)
	a.Done, a.Reason, a.spent = true, reason(d.Finish), s.spent(d, u)
	if s.Conversation != nil {
		a.Context = s.Conversation(d.Text, d.Reasoning)
	}
	if !s.logprobs {
		p.Value(a)
		return
	}
	a.Logprobs = json.RawMessage("[]")
	p.Around(a, `"logprobs":[]`, func() {
		tokens := answerTokens(d.Tokens)
		p.Raw(`"logprobs":`)
		p.List(len(tokens), func(i int) { p.Value(newLogprob(&tokens[i])) })
	})
}

// Begin writes nothing.
func (s *Shape) Begin(int) any { return nil }

// Chunk is the line for text; calls wait until they are whole.
func (s *Shape) Chunk(d tts.Delta) any {
	var calls []toolcall.Call
	for i := range d.Calls {
		if d.Calls[i].Index == len(s.calls) {
			calls = s.complete()
		}
		s.calls = toolcall.Join(s.calls, &d.Calls[i])
	}
	if d.Finish != "" {
		s.end, calls = d, s.complete()
	}
	if s.Conversation != nil {
		s.said.WriteString(d.Text)
		s.reasoning.WriteString(d.Reasoning)
	}
	var list []logprob
	if s.logprobs {
		for _, t := range answerTokens(d.Tokens) {
			list = append(list, newLogprob(&t))
		}
	}
	if d.Text == "" && d.Reasoning == "" && calls == nil && list == nil {
		return nil
	}
	a := s.line(d.Text, d.Reasoning, calls)
	if list != nil {
		a.Logprobs = list
	}
	return a
}

// complete is the call under way, which nothing more is added to.
func (s *Shape) complete() []toolcall.Call {
	if n := len(s.calls); n > 0 {
		return s.calls[n-1:]
	}
	return nil
}

// KeepAlive is a line that adds nothing.
func (s *Shape) KeepAlive() any { return s.line("", "", nil) }

// End is the last line.
func (s *Shape) End(u tts.Usage) any {
	a := s.line("", "", nil)
	a.Done, a.Reason, a.spent = true, reason(s.end.Finish), s.spent(&s.end, u)
	if s.Conversation != nil {
		a.Context = s.Conversation(s.said.String(), s.reasoning.String())
	}
	return a
}

// Done is nothing: the last line says that it is.
func (s *Shape) Done() any { return nil }

// Loaded is the answer to a request without a prompt: clients load models so.
func (s *Shape) Loaded() any {
	a := s.line("", "", nil)
	a.Done, a.Reason = true, "load"
	return a
}

// Failure is an error as Ollama's clients expect it, whole or as a line.
func Failure(text string) any {
	return struct {
		Error string `json:"error"`
	}{text}
}
