// Package llamacpp is what is spoken here of llama.cpp's own API: gaps to fill in, templates,
// which models are in memory, and adapters.
package llamacpp

import (
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/server/residency"
	"github.com/lutra-lm/lutra/tts"
)

// Protocol returns the API.
func Protocol() api.Protocol {
	return api.Protocol{Routes: []api.Route{
		{Path: "/infill", Factor: api.CompletionFactor, Ask: infill},
		{Path: "/apply-template", Factor: api.TemplateFactor, Answer: applyTemplate},
		{Path: "/lora-adapters", Answer: listAdapters},
		{Path: "/lora-adapters", Rules: true, Factor: api.TemplateFactor, List: api.LoraField, Answer: scaleAdapters},
		{Path: "/models", Answer: api.ListModels},
		{Path: "/models/load", Rules: true, Factor: api.TemplateFactor, Answer: change((*residency.Set).Load)},
		{Path: "/models/unload", Rules: true, Factor: api.TemplateFactor, Answer: change((*residency.Set).Unload)},
	}}
}

// infill reads POST /infill.
func infill(c *api.Call) (*api.Ask, error) {
	a, err := c.Generator()
	if err != nil {
		return nil, err
	}
	req := &tts.Request{}
	reader{c.Body}.infill(req, a.Model.Model)
	c.Body.Bool("stream", &a.Stream)
	a.Requests, a.Encoder = []*tts.Request{req}, &encoder{model: a.Name}
	return a, fields.Finish(c)
}

// applyTemplate answers POST /apply-template: the text that a model would read for messages.
func applyTemplate(c *api.Call) error {
	f := fields.Reader{Fields: c.Body}
	a, err := c.Model()
	if err != nil {
		return err
	}
	p, _ := f.Conversation()
	a.Model.Switch(&p)
	f.Tools(&p)
	if err := fields.Finish(c); err != nil {
		return err
	}
	prepared, err := a.Prepare(c.Context(), &p)
	if err != nil {
		return err
	}
	return c.Reply(func(p *jsonwrite.Reply) {
		p.Raw(`{"prompt":`)
		p.Text(prepared.Text)
		report.WriteTruncation(p, prepared)
		p.Raw("}")
	})
}

// reader reads a request's fields.
type reader struct{ *jsonread.Fields }

// maxFiles bounds input_extra.
const maxFiles = 256

// custom has llama-server's defaults, of common_params_sampling in its common/common.h. A
// model's own go before them there too, field by field (common_init_sampler_from_model).
func custom() sampling.Config {
	return sampling.Config{
		Temperature: new(float32(0.8)), TopK: new(40), TopP: new(float32(0.95)), MinP: new(float32(0.05)), TypicalP: new(float32(1)),
		RepetitionPenalty: new(float32(1)), RepeatLastN: new(64),
	}
}

// infill reads what to fill in for a model.
func (f reader) infill(req *tts.Request, m *tts.Model) {
	var prefix, suffix, prompt string
	f.Text("input_prefix", &prefix)
	f.Text("input_suffix", &suffix)
	f.Text("prompt", &prompt)
	in := &tts.Infill{Suffix: suffix}
	items, _ := f.List("input_extra", maxFiles)
	for i, raw := range items {
		o, ok := f.Sub(fmt.Sprintf("input_extra[%d]", i), raw)
		if !ok {
			return
		}
		var file tts.File
		o.String("filename", &file.Name)
		o.Text("text", &file.Text)
		o.Ignore("time")
		f.Adopt(o)
		in.Files = append(in.Files, file)
	}
	if !m.Infills() {
		f.Fail(jsonread.CodeUnsupported, "model", "the model has no tokens to fill in the middle of a text.")
	}
	req.Prompt.Text, req.Prompt.Infill = prefix+prompt, in
	fields.Reader{Fields: f.Fields}.Sampling(req, m, 1, custom())
	most := -1
	if f.Int("n_predict", &most, -1, math.MaxInt32); most > 0 {
		req.Sampling.MaxTokens = most
	}
	req.NoTokens = most == 0 // to compute the prompt beforehand
	// The order of samplers is ours, and bounds of time are the server's.
	f.Ignore("samplers", "timings_per_token", "t_max_prompt_ms", "t_max_predict_ms", "n_indent", "response_fields")
}

// encoder writes completions, which have one choice.
type encoder struct {
	api.Choices
	model string
	end   tts.End
}

// completion is an answer, or a piece of one.
type completion struct {
	Index   int    `json:"index"`
	Content string `json:"content"`
	Stop    bool   `json:"stop"`
	*ended
}

// ended is the last piece of an answer.
type ended struct {
	Model     string          `json:"model"`
	StopType  string          `json:"stop_type"` // eos, limit or word
	StopWord  string          `json:"stopping_word"`
	Predicted int             `json:"tokens_predicted"`
	Evaluated int             `json:"tokens_evaluated"`
	Cached    int             `json:"tokens_cached"`
	Truncated bool            `json:"truncated"`
	Timings   *report.Timings `json:"timings"`
}

func (c *encoder) ended(d *tts.End, u tts.Usage) *ended {
	e := &ended{Model: c.model, StopType: "eos", StopWord: d.Stop, Predicted: u.Completion, Evaluated: u.Prompt, Cached: u.Cached, Timings: report.NewTimings(&d.Timing, u)}
	switch {
	case d.Finish.Cut():
		e.StopType = "limit"
	case d.Stop != "":
		e.StopType = "word"
	}
	return e
}

func (c *encoder) Full(p *jsonwrite.Reply, u tts.Usage) {
	one := c.List[0]
	p.Value(completion{Content: one.Text(), Stop: true, ended: c.ended(&one.End, u)})
}

func (c *encoder) Event(e tts.Event) any {
	switch w := e.What.(type) {
	case tts.Text:
		return completion{Content: w.Text}
	case tts.End:
		c.end = w
	}
	return nil
}

func (c *encoder) KeepAlive() any { return completion{} }

func (c *encoder) End(u tts.Usage, fault *api.Fault) any {
	if fault != nil {
		return api.Failure(fault)
	}
	return completion{Stop: true, ended: c.ended(&c.end, u)}
}
