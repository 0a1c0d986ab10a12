// Package llamacpp is the JSON of llama.cpp's /infill: fields to a tts.Request, deltas
// to its completions.
package llamacpp

import (
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
)

// Fields are a request's fields.
type Fields struct{ *jsonread.Fields }

// maxFiles bounds input_extra.
const maxFiles = 256

// defaultTemperature is llama.cpp's.
const defaultTemperature = 0.8

// Infill reads POST /infill for a model.
func (f Fields) Infill(req *tts.Request, m *tts.Model) {
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
	hasTemperature := f.Has("temperature")
	openai.Fields{Fields: f.Fields}.Sampling(req, m, 1)
	if !hasTemperature {
		req.Sampling.Temperature = defaultTemperature
	}
	most := -1
	if f.Int("n_predict", &most, -1, math.MaxInt32); most > 0 {
		req.Sampling.MaxTokens = most
	}
	req.NoTokens = most == 0 // to compute the prompt beforehand
	// The order of samplers is ours, and bounds of time are the server's.
	f.Ignore("samplers", "t_max_prompt_ms", "t_max_predict_ms", "n_indent", "response_fields")
}

// Shape writes completions, which have one choice.
type Shape struct {
	model string
	end   tts.Delta
}

// NewShape writes the answer of a model.
func NewShape(model string) *Shape { return &Shape{model: model} }

// completion is an answer, or a piece of one.
type completion struct {
	Index   int    `json:"index"`
	Content string `json:"content"`
	Stop    bool   `json:"stop"`
	*ended
}

// ended is what the last piece says.
type ended struct {
	Model     string  `json:"model"`
	StopType  string  `json:"stop_type"` // eos, limit or word
	StopWord  string  `json:"stopping_word"`
	Predicted int     `json:"tokens_predicted"`
	Evaluated int     `json:"tokens_evaluated"`
	Cached    int     `json:"tokens_cached"`
	Truncated bool    `json:"truncated"`
	Timings   timings `json:"timings"`
}

type timings struct {
	PromptN      int     `json:"prompt_n"`
	PromptMS     float64 `json:"prompt_ms"`
	PredictedN   int     `json:"predicted_n"`
	PredictedMS  float64 `json:"predicted_ms"`
	PerSecond    float64 `json:"predicted_per_second"`
	PromptPerSec float64 `json:"prompt_per_second"`
}

func (s *Shape) ended(d *tts.Delta, u tts.Usage) *ended {
	e := &ended{Model: s.model, StopType: "eos", StopWord: d.Stop, Predicted: u.Completion, Evaluated: u.Prompt, Cached: u.Cached}
	switch {
	case d.Finish == tts.FinishLength:
		e.StopType = "limit"
	case d.Stop != "":
		e.StopType = "word"
	}
	t := timings{PromptN: u.Prompt - u.Cached, PromptMS: d.Timing.Prefill.Seconds() * 1e3, PredictedN: u.Completion, PredictedMS: d.Timing.Decode.Seconds() * 1e3}
	if t.PromptMS > 0 {
		t.PromptPerSec = float64(t.PromptN) / t.PromptMS * 1e3
	}
	if t.PredictedMS > 0 {
		t.PerSecond = float64(t.PredictedN) / t.PredictedMS * 1e3
	}
	e.Timings = t
	return e
}

// Open takes nothing from a run's first delta.
func (s *Shape) Open(tts.Delta) {}

// Whole writes an answer.
func (s *Shape) Whole(p *jsonwrite.Reply, choices []tts.Delta, u tts.Usage) {
	p.Value(completion{Content: choices[0].Text, Stop: true, ended: s.ended(&choices[0], u)})
}

// Begin writes nothing.
func (s *Shape) Begin(int) any { return nil }

// Chunk is the event for text.
func (s *Shape) Chunk(d tts.Delta) any {
	if d.Finish != "" {
		s.end = d
	}
	if d.Text == "" {
		return nil
	}
	return completion{Content: d.Text}
}

// KeepAlive is an event that adds nothing.
func (s *Shape) KeepAlive() any { return completion{} }

// End is the last event.
func (s *Shape) End(u tts.Usage) any { return completion{Stop: true, ended: s.ended(&s.end, u)} }

// Done is nothing: the last event says that it is.
func (s *Shape) Done() any { return nil }

// Lines says that answers are streamed as events.
func (s *Shape) Lines() bool { return false }
