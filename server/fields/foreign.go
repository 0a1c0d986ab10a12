package fields

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"strconv"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// Neutral tells whether a number asks for nothing. Clients often send every field
// that they know, with the value that disables it.
type Neutral func(v float64) bool

var (
	never      Neutral = func(float64) bool { return false }
	unlessZero Neutral = func(v float64) bool { return v == 0 }
	unlessOne  Neutral = func(v float64) bool { return v == 1 }
	ifPositive Neutral = func(v float64) bool { return v <= 0 }
)

// Group lists fields of one origin.
type Group struct {
	Of     string // as docs/api.md has it
	Fields map[string]Neutral
}

// Refused are request fields of OpenAI's API, vLLM, SGLang, llama.cpp and
// ollama that change an answer and that no endpoint here acts on: they are refused by
// name. null, false, empty values, "none" and "disabled" ask for nothing; so do the
// numbers that are neutral for the field.
var Refused = []Group{
	{"OpenAI", map[string]Neutral{
		"audio": never, "best_of": unlessOne, "function_call": never, "functions": never, "modalities": never,
		"suffix": never, "tool_choice": never, "tools": never, "top_logprobs": unlessZero, "truncation": never,
		"web_search_options": never,
	}},
	{"formats of [answers](#structured-answers), outside of chats and completions", map[string]Neutral{
		"grammar": never, "guided_choice": never, "guided_grammar": never, "guided_json": never, "guided_regex": never, "json_schema": never,
		"response_format": never, "structured_outputs": never,
	}},
	{"vLLM, outside of chats and completions", map[string]Neutral{
		"prompt_logprobs": never, "return_token_ids": never,
	}},
	{"Lutra, outside of chats and completions", map[string]Neutral{
		"receipt": never,
	}},
	{"structured output", map[string]Neutral{
		"chat_format": never, "ebnf": never, "format": never, "grammar_lazy": never, "grammar_triggers": never, "grammar_type": never,
		"guided_decoding_backend":   never,
		"guided_whitespace_pattern": never, "regex": never, "structural_tag": never,
	}},
	{"vLLM", map[string]Neutral{
		"add_special_tokens": never, "chat_template": never, "documents": never, "ec_transfer_params": never,
		"kv_transfer_params": never, "logits_processors": never, "logprob_token_ids": never,
		"prompt_embeds": never, "return_prompt_text": never,
		"return_tokens_as_token_ids": never, "stop_regex": never, "stream_options.continuous_usage_stats": never,
		"truncate_prompt_tokens": never, "use_beam_search": never, "vllm_xargs": never, "watermarking": never,
	}},
	{"llama.cpp", map[string]Neutral{
		"adaptive_target": func(v float64) bool { return v < 0 }, "dynatemp_range": unlessZero, "image_data": never,
		"input_extra": never, "input_prefix": never, "input_suffix": never, "lora": never, "min_keep": unlessZero, "mirostat": unlessZero,
		"n_cmpl": unlessOne, "n_indent": unlessZero, "n_probs": unlessZero, "parse_tool_calls": never, "post_sampling_probs": never,
		"reasoning_control": never, "response_fields": never,
		"return_progress": never, "return_tokens": never, "samplers": never, "t_max_predict_ms": ifPositive,
		"thinking_forced_open": never,
	}},
	{"ollama", map[string]Neutral{
		"_debug_render_only": never, "context": never, "images": never, "options": never, "raw": never, "system": never, "template": never, "think": never,
	}},
}

// Unsupported are the fields of Refused.
var Unsupported = merged(Refused)

// Ignored are fields of these servers that leave an answer as it is, or matter only
// besides one that is refused.
var Ignored = []Group{
	{"OpenAI", harmless(
		"prediction", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier", "service_tier",
		"store", "stream_options.include_obfuscation", "verbosity",
	)},
	{"vLLM", harmless(
		"length_penalty", "media_io_kwargs", "mm_processor_kwargs", "request_id", "return_mm_kwargs",
		"return_token_offsets", "routed_experts_prompt_start", "session_id", "spaces_between_special_tokens", "stream_interval",
		"truncation_side",
	)},
	{"llama.cpp", harmless(
		"adaptive_decay", "backend_sampling", "cache_prompt", "dynatemp_exponent", "id_slot", "mirostat_eta", "mirostat_tau", "n_cache_reuse", "n_discard",
		"n_keep", "preserved_tokens", "reasoning_in_content", "repeat_last_n", "speculative.n_max", "speculative.n_min",
		"speculative.p_min", "sse_ping_interval", "verbose",
	)},
	{"ollama, outside of its API", harmless(
		"keep_alive",
	)},
	{"fields of chats, in completions", harmless(
		"enable_thinking", "include_reasoning", "parallel_tool_calls", "reasoning_budget", "reasoning_budget_tokens",
		"thinking_budget_tokens", "thinking_token_budget", "reasoning", "reasoning_effort", "reasoning_format",
	)},
}

// Harmless are the fields of Ignored.
var Harmless = merged(Ignored)

// harmless returns fields that nothing refuses.
func harmless(names ...string) map[string]Neutral {
	group := map[string]Neutral{}
	for _, name := range names {
		group[name] = func(float64) bool { return true }
	}
	return group
}

func merged(groups []Group) map[string]Neutral {
	all := map[string]Neutral{}
	for _, g := range groups {
		maps.Copy(all, g.Fields)
	}
	return all
}

// refused tells whether a field is one of Unsupported and asks for anything: a search of
// the web is asked for by an empty object, too.
func refused(name string, raw json.RawMessage) bool {
	neutral, known := Unsupported[name]
	return known && (neutral.Asks(raw) || name == "web_search_options" && jsonread.Kind(raw) == "an object")
}

// Asks tells whether a field's value asks for anything.
func (n Neutral) Asks(raw json.RawMessage) bool {
	switch v := bytes.TrimSpace(raw); string(v) {
	case "null", "[]", "{}", "false", `""`, `"none"`, `"disabled"`:
		return false
	default:
		number, err := strconv.ParseFloat(string(v), 64)
		return err != nil || !n(number)
	}
}

// instead tells what to send in place of fields of OpenAI's API that are no more.
var instead = map[string]string{
	"functions":     "; send 'tools'",
	"function_call": "; send 'tool_choice', and in messages 'tool_calls'",
}

// Finish returns the first fault of a request. Without one, it refuses unread fields that ask
// for what no endpoint does, and tells the server of those that nobody knows.
func Finish(c *api.Call) error {
	priority(c)
	salted(c)
	if c.Body.Err != nil {
		return c.Body.Err
	}
	for _, name := range c.Body.Unread() {
		_, known := Unsupported[name]
		switch {
		case refused(name, c.Body.Raw(name)):
			return api.Invalid(jsonread.CodeUnsupported, name, "Invalid '%s': this server does not support it%s.", name, instead[name])
		case known || Harmless[name] != nil:
			continue
		}
		if err := c.Unknown(name); err != nil {
			return err
		}
	}
	return nil
}

// priority has a request with a priority of vLLM's give way to those without: the lower goes first there, and below 0 there
// is none.
func priority(c *api.Call) {
	n := 0
	if c.Body.Int("priority", &n, 0, math.MaxInt32); n > 0 {
		c.Request = c.WithContext(batcher.WithBackground(c.Context()))
	}
}

// salted has a request share computed prefixes with requests of the same salt alone, as in vLLM.
func salted(c *api.Call) {
	salt, name := "", "cache_salt"
	given := c.Body.Has(name)
	if c.Body.String(name, &salt); !given {
		return
	}
	if salt == "" {
		c.Body.Fail(jsonread.CodeValue, name, "a salt has 1 to %d bytes.", jsonread.MaxString)
	}
	c.Request = c.WithContext(batcher.WithSalt(c.Context(), salt))
}

// Refuse refuses fields that ask for what this server does not do.
func (f Reader) Refuse(names ...string) {
	for _, name := range names {
		if f.Has(name) && never.Asks(f.Raw(name)) {
			f.Fail(jsonread.CodeUnsupported, name, "this server does not support it%s.", instead[name])
		}
		f.Ignore(name)
	}
}
