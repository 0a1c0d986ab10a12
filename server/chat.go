package server

import (
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"

	openai "github.com/sashabaranov/go-openai"
)

// chat is POST /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request, f fields) error {
	g, err := s.chatRequest(f, r.Header)
	if err != nil {
		return err
	}
	s.trace(r, g)
	return s.generate(w, r, g)
}

// chatRequest checks a chat request.
func (s *Server) chatRequest(f fields, header http.Header) (*generation, error) {
	g, err := s.beginGenerator(f)
	if err != nil {
		return nil, err
	}
	req := &tts.Request{Prompt: f.conversation()}
	tempered := f.Has("temperature")
	f.sampling(req, g.model.Model, s.opt.MaxChoices)
	f.tokenLimit(req, 1, "max_completion_tokens", "max_tokens")
	f.Bool("logprobs", &req.Sampling.Logprobs)
	if f.Int("top_logprobs", &req.Sampling.TopLogprobs, 0, maxTopLogprobs) && !req.Sampling.Logprobs {
		f.Fail(jsonread.CodeValue, "top_logprobs", "it is only allowed when 'logprobs' is true.")
	}
	req.MaxLogprobs = maxLogprobs
	g.thinking = f.reasoningFormat(s.opt.ReasoningFormat)
	reasoning := true
	f.Bool("include_reasoning", &reasoning)
	g.hidden = !reasoning
	f.responseFormat()
	f.toolChoice(&req.Prompt)
	if last := len(req.Prompt.Messages) - 1; f.echoes() && req.Prompt.Ending == tts.EndOpen {
		g.echo, _ = req.Prompt.Messages[last].Content.(string)
	}
	f.modalities()
	s.scale(f, header, g, req, tempered)
	f.bookkeeping()
	shape := &chatShape{id: "chatcmpl-" + uuid.NewString(), created: time.Now().Unix(), model: g.name, logprobs: req.Sampling.Logprobs}
	g.stream, shape.usage = f.streaming()
	shape.searched = g.report
	g.requests, g.shape = []*tts.Request{req}, shape
	g.report.of(1, req.N)
	return g, s.finish(f)
}

// begin reads the model of a request.
func (s *Server) begin(f fields) (*generation, error) {
	g := &generation{}
	f.String("model", &g.name)
	if f.Err != nil {
		return nil, f.Err
	}
	var err error
	if g.model, g.preset, err = s.model(g.name); err != nil {
		return nil, err
	}
	if g.name == "" {
		g.name = g.model.Name
	}
	return g, nil
}

// beginGenerator is begin for requests that want text written.
func (s *Server) beginGenerator(f fields) (*generation, error) {
	g, err := s.begin(f)
	if err == nil && g.model.reward != nil {
		return nil, invalid(jsonread.CodeValue, "model", "The model '%s' judges answers and writes none. Send them to /v1/rewards.", jsonread.Brief([]byte(g.name)))
	}
	return g, err
}

// responseFormat accepts plain text, which is all there is.
func (f fields) responseFormat() {
	o, ok := f.Object("response_format")
	if !ok {
		return
	}
	var kind string
	o.String("type", &kind)
	if kind != "text" {
		o.Fail(jsonread.CodeUnsupported, "type", "this server answers with type text only, but got '%s'.", jsonread.Brief([]byte(kind)))
	}
	f.Adopt(o)
}

// reasoningFormat reads where thoughts go: true is apart from the answer.
func (f fields) reasoningFormat(format string) bool {
	if f.String("reasoning_format", &format); format != ReasoningAuto && format != ReasoningNone {
		f.Fail(jsonread.CodeValue, "reasoning_format", "expected auto or none, but got '%s'.", jsonread.Brief([]byte(format)))
	}
	return format == ReasoningAuto
}

// echoes reads vLLM's echo: begin the answer with the message that it continues.
func (f fields) echoes() (echo bool) {
	f.Bool("echo", &echo)
	return echo
}

// modalities accepts text.
func (f fields) modalities() {
	raw, ok := f.Take("modalities")
	if !ok {
		return
	}
	only := ""
	if jsonread.Kind(raw) == "a list" && jsonread.Count(raw) == 1 {
		for item := range jsonread.Elements(raw) {
			only, _ = jsonread.Text(item)
		}
	}
	if only != "text" {
		f.Fail(jsonread.CodeUnsupported, "modalities", `this server supports ["text"] only.`)
	}
}

// bookkeeping checks fields that clients keep for themselves.
func (f fields) bookkeeping() {
	var s string
	f.String("user", &s)
	f.metadata()
}

// chatShape writes chat completions.
type chatShape struct {
	id       string
	created  int64
	model    string
	logprobs bool
	usage    bool                       // the stream ends with the usage
	searched *searchReport              // nil: there was no search
	dropped  int                        // messages that the model does not read
	plain    map[int]jsonwrite.Template // of each choice: its chunk of nothing but text
}

func (c *chatShape) Open(first tts.Delta) { c.dropped = first.Dropped }

func (c *chatShape) response(object string, usage optionalUsage, choices ...chatChoice) *chatResponse {
	return &chatResponse{ID: c.id, Object: object, Created: c.created, Model: c.model, Choices: choices, Usage: usage}
}

func (c *chatShape) Whole(p *jsonwrite.Reply, choices []tts.Delta, u tts.Usage) {
	r := c.response("chat.completion", c.searched.usage(u))
	r.Choices, r.Scaling, r.Truncation = []chatChoice{}, c.searched.summary(), newTruncation(c.dropped)
	p.Around(r, `"choices":[]`, func() {
		p.Raw(`"choices":`)
		p.List(len(choices), func(i int) { c.choice(p, i, &choices[i]) })
	})
}

// choice writes all of one.
func (c *chatShape) choice(p *jsonwrite.Reply, index int, ch *tts.Delta) {
	whole := chatChoice{Index: index, FinishReason: finishReason(ch.Finish),
		Message: &chatMessage{Role: openai.ChatMessageRoleAssistant, Content: ch.Text, Reasoning: ch.Reasoning}, Scaling: c.searched.choice(index)}
	if !c.logprobs {
		p.Value(whole)
		return
	}
	p.Around(whole, `"logprobs":null`, func() {
		p.Raw(`"logprobs":{"content":`)
		tokens := messageTokens(ch.Tokens)
		p.List(len(tokens), func(i int) { p.Value(newChatToken(&tokens[i])) })
		p.Raw(`,"refusal":null}`)
	})
}

// delta is a chunk of one choice.
func (c *chatShape) delta(ch chatChoice) *chatResponse {
	var u optionalUsage
	if c.usage {
		u = nullUsage
	}
	return c.response("chat.completion.chunk", u, ch)
}

func (c *chatShape) Begin(index int) any {
	r := c.delta(chatChoice{Index: index, Delta: &chatDelta{Role: openai.ChatMessageRoleAssistant, Content: new("")}})
	if index == 0 {
		r.Truncation = newTruncation(c.dropped)
	}
	return r
}

func (c *chatShape) Chunk(d tts.Delta) any {
	if d.Reasoning == "" && d.Finish == "" && !c.logprobs {
		return c.text(d.Choice).With(d.Text)
	}
	ch := chatChoice{Index: d.Choice, Delta: &chatDelta{}, FinishReason: finishReason(d.Finish)}
	switch {
	case d.Reasoning != "":
		ch.Delta.Reasoning = d.Reasoning
	case d.Finish == "":
		ch.Delta.Content, ch.Logprobs = &d.Text, newChatLogprobs(d.Tokens)
	}
	if d.Reasoning == "" && d.Finish == "" && d.Text == "" && len(ch.Logprobs.Content) == 0 {
		return nil // nothing but the token that ended the turn
	}
	r := c.delta(ch)
	if d.Finish != "" {
		r.Choices[0].Scaling = c.searched.choice(d.Choice)
		r.Scaling = c.searched.search(d.Choice)
	}
	return r
}

// text is a choice's chunk of nothing but text.
func (c *chatShape) text(choice int) jsonwrite.Template {
	f, ok := c.plain[choice]
	if !ok {
		if c.plain == nil {
			c.plain = map[int]jsonwrite.Template{}
		}
		f = jsonwrite.NewTemplate(c.delta(chatChoice{Index: choice, Delta: &chatDelta{Content: new(jsonwrite.Hole)}}))
		c.plain[choice] = f
	}
	return f
}

func (c *chatShape) Alive() any {
	r := c.delta(chatChoice{Delta: &chatDelta{Content: new("")}})
	r.Scaling = c.searched.progress()
	return r
}

func (c *chatShape) End(u tts.Usage) any {
	if !c.usage {
		return nil
	}
	r := c.response("chat.completion.chunk", c.searched.usage(u))
	r.Choices = []chatChoice{} // a list, though an empty one
	return r
}
