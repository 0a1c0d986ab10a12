package llamacpp

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// reader reads a request's fields.
type reader struct{ *jsonread.Fields }

// Bounds of a request.
const (
	maxFiles  = 256 // of input_extra
	maxFields = 64  // of response_fields
)

// custom has llama-server's defaults, of common_params_sampling in its common/common.h. A
// model's own go before them there too, field by field (common_init_sampler_from_model).
func custom() sampling.Config {
	return sampling.Config{
		Temperature: new(float32(0.8)), TopK: new(40), TopP: new(float32(0.95)), MinP: new(float32(0.05)), TypicalP: new(float32(1)),
		RepetitionPenalty: new(float32(1)), RepeatLastN: new(64),
	}
}

// complete reads POST /completion.
func complete(c *api.Call) (*api.Ask, error) {
	a, err := c.Generator()
	if err != nil {
		return nil, err
	}
	f, req := reader{c.Body}, tts.Request{}
	prompts, many := f.prompts(a.Model.Model, c.MaxChoices)
	f.sampling(&req, a.Model.Model, c.MaxChoices)
	f.samplers(&req)
	fields.Reader{Fields: c.Body}.TokenLimit(&req, 0, "max_tokens")
	fields.Reader{Fields: c.Body}.Format(&req, a.Model.Model)
	if len(prompts)*max(req.N, 1) > c.MaxChoices {
		f.Fail(jsonread.CodeValue, "n_cmpl", "%d prompts with %d completions each are more than the %d allowed.", len(prompts), req.N, c.MaxChoices)
	}
	req.MaxLogprobs = fields.MaxLogprobs / max(len(prompts), 1)
	e := f.encoder(a, &req)
	e.list = many || req.N > 1
	for _, p := range prompts {
		r := req
		r.Prompt = p
		a.Requests = append(a.Requests, &r)
	}
	return a, fields.Finish(c)
}

// infill reads POST /infill.
func infill(c *api.Call) (*api.Ask, error) {
	a, err := c.Generator()
	if err != nil {
		return nil, err
	}
	f, req := reader{c.Body}, &tts.Request{}
	f.infill(req, a.Model.Model, c.MaxChoices)
	f.encoder(a, req).list = req.N > 1
	a.Requests = []*tts.Request{req}
	return a, fields.Finish(c)
}

// prompts reads a text, a list of token ids and texts, or a list of such prompts; many says that it is one.
func (f reader) prompts(m *tts.Model, most int) (prompts []tts.Prompt, many bool) {
	raw, ok := f.Take("prompt")
	if !ok {
		f.Fail(jsonread.CodeMissing, "prompt", "a prompt is required.")
		return nil, false
	}
	if jsonread.Kind(raw) == "a list" {
		texts, numbers := 0, 0
		for item := range jsonread.Elements(raw) {
			switch jsonread.Kind(item) {
			case "a number":
				numbers++
			case "a string":
				texts++
			default:
				many = true
			}
		}
		many = many || numbers == 0 && texts > 0 // only texts are prompts each
	}
	if !many {
		return []tts.Prompt{f.prompt("prompt", raw, m)}, false
	}
	items, _ := f.Items("prompt", raw, most)
	for i, item := range items {
		prompts = append(prompts, f.prompt(fmt.Sprintf("prompt[%d]", i), item, m))
	}
	return prompts, true
}

// prompt reads raw, found at name, as a text, or token ids with texts between them.
func (f reader) prompt(name string, raw json.RawMessage, m *tts.Model) (p tts.Prompt) {
	if text, ok := jsonread.Text(raw); ok {
		return tts.Prompt{Text: text}
	}
	if jsonread.Kind(raw) != "a list" {
		f.WrongType(name, "a string, or a list of token ids and strings,", raw)
		return p
	}
	if jsonread.Count(raw) == 0 {
		f.Fail(jsonread.CodeValue, name, "the list is empty.")
		return p
	}
	_, leave, err := cpulimit.Enter(f.Context())
	if err != nil {
		f.Err = err
		return p
	}
	defer leave()
	for item := range jsonread.Elements(raw) {
		if text, ok := jsonread.Text(item); ok {
			p.Tokens = m.Tokenizer.Encode(p.Tokens, text, tokenizer.Options{ParseSpecial: true, AddSpecial: p.Tokens == nil})
		} else if ids := f.Tokens(name, json.RawMessage("["+string(item)+"]"), 1, m.Vocab); f.Err == nil {
			p.Tokens = append(p.Tokens, ids...)
		}
		if n := len(p.Tokens); n > m.Context && f.Err == nil {
			f.Err = &tts.ContextError{Limit: m.Context, Prompt: n, Part: tts.Part(name)}
		}
		if f.Err != nil {
			return p
		}
	}
	return p
}

// sampling reads how tokens are sampled, and what is told of them.
func (f reader) sampling(req *tts.Request, m *tts.Model, most int) {
	if raw := string(f.Raw("seed")); raw == "-1" || raw == "4294967295" {
		f.Ignore("seed") // a random one
	}
	if f.Has("repeat_penalty") {
		f.Ignore("repetition_penalty") // which is none of llama.cpp's
	}
	if f.Has("n_cmpl") {
		f.Put("n", f.Raw("n_cmpl"))
		f.Ignore("n_cmpl")
	}
	if text, ok := jsonread.Text(f.Raw("dry_sequence_breakers")); ok && json.Valid([]byte(text)) && jsonread.Kind([]byte(text)) == "a list" {
		f.Put("dry_sequence_breakers", json.RawMessage(text)) // as SillyTavern writes it
	}
	fields.Reader{Fields: f.Fields}.Sampling(req, m, most, custom())
	if f.Int("n_probs", &req.Sampling.TopLogprobs, 0, fields.MaxTopLogprobs) {
		req.Sampling.Logprobs = req.Sampling.TopLogprobs > 0
	}
	f.Bool("return_tokens", &req.TokenIDs)
}

// sampler is one of llama.cpp's: its names, its letter, and the fields that turn it off.
type sampler struct {
	names  []string
	letter byte
	fields []string
}

var samplers = []sampler{
	{[]string{"penalties"}, 'e', []string{"repetition_penalty", "presence_penalty", "frequency_penalty"}},
	{[]string{"dry"}, 'd', []string{"dry_multiplier"}},
	{[]string{"top_n_sigma", "top-n-sigma"}, 's', []string{"top_n_sigma"}},
	{[]string{"top_k", "top-k"}, 'k', []string{"top_k"}},
	{[]string{"typ_p", "typ-p", "typ", "typical_p", "typical-p", "typical"}, 'y', []string{"typical_p"}},
	{[]string{"top_p", "top-p", "nucleus"}, 'p', []string{"top_p"}},
	{[]string{"min_p", "min-p"}, 'm', []string{"min_p"}},
	{[]string{"xtc"}, 'x', []string{"xtc_probability"}},
	{[]string{"temperature", "temp"}, 't', []string{"temperature"}},
}

// idle are samplers that change nothing unless a field of theirs asks for it, which is refused by its name.
var idle = []string{"adaptive_p", "adaptive-p", "tfs_z"}

// samplers reads which samplers there are: those that a list leaves out are off. Their order is ours.
func (f reader) samplers(req *tts.Request) {
	raw, ok := f.Take("samplers")
	if !ok {
		return
	}
	on := make([]bool, len(samplers))
	turnOn := func(what string, of func(s sampler) bool) {
		if i := slices.IndexFunc(samplers, of); i >= 0 {
			on[i] = true
		} else {
			f.Fail(jsonread.CodeValue, "samplers", "there is no sampler %s here; there are %s.", what, strings.Join(samplerNames(), ", "))
		}
	}
	letters, short := jsonread.Text(raw)
	for _, letter := range []byte(letters) {
		turnOn(strconv.QuoteRune(rune(letter)), func(s sampler) bool { return s.letter == letter })
	}
	var items []json.RawMessage
	if !short {
		items, _ = f.Items("samplers", raw, maxFields)
	}
	for _, item := range items {
		name, ok := jsonread.Text(item)
		if !ok {
			f.WrongType("samplers", "a list of strings", item)
			return
		}
		if !slices.Contains(idle, name) {
			turnOn(strconv.Quote(name), func(s sampler) bool { return slices.Contains(s.names, name) })
		}
	}
	for i, s := range samplers {
		if on[i] {
			continue
		}
		for _, name := range s.fields {
			row := sampling.Named(name)
			row.SetValue(&req.Sampling, row.Off)
		}
	}
}

// infill reads what to fill in for a model.
func (f reader) infill(req *tts.Request, m *tts.Model, most int) {
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
	f.sampling(req, m, most)
	tokens := -1
	if f.Int("n_predict", &tokens, -1, math.MaxInt32); tokens > 0 {
		req.Sampling.MaxTokens = tokens
	}
	req.NoTokens = tokens == 0 // to compute the prompt beforehand
	req.MaxLogprobs = fields.MaxLogprobs
	// The order of samplers is ours, and bounds of time are the server's.
	f.Ignore("samplers", "t_max_prompt_ms", "t_max_predict_ms", "n_indent")
}

// encoder reads what answers have, and makes their encoder.
func (f reader) encoder(a *api.Ask, req *tts.Request) *encoder {
	f.Bool("stream", &a.Stream)
	f.Ignore("timings_per_token") // the end has them
	e := &encoder{model: a.Model.Model, name: a.Name, n: max(req.N, 1), ids: req.TokenIDs, probs: req.Sampling.Logprobs, request: req}
	items, _ := f.List("response_fields", maxFields)
	for _, item := range items {
		name, ok := jsonread.Text(item)
		if !ok || len(name) > jsonread.MaxNameLen {
			f.WrongType("response_fields", "a list of names", item)
		}
		e.only = append(e.only, name)
	}
	if a.Stream {
		e.ids, req.TokenIDs = true, true // as there
	}
	a.Encoder = e
	return e
}
