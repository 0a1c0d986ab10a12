package llamacpp

import (
	"encoding/json"
	"strings"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts"
)

// encoder writes completions.
type encoder struct {
	choices api.Choices
	model   *tts.Model
	name    string
	request *tts.Request
	n       int      // completions of each prompt
	list    bool     // they are a list, even if there is one
	ids     bool     // with the ids of their tokens
	probs   bool     // with log-probabilities
	only    []string // the fields that the end has; none: all
	told    []told   // by completion
	prompts map[int]prompt
}

// told has the facts about a completion besides its text.
type told struct {
	ids       []int32 // of a stream, those that no piece has had
	predicted int
	line      bool // its text has a new line
	end       tts.End
}

type prompt struct {
	ids    []int32
	cached int
}

// completion is an answer, or a piece of one.
type completion struct {
	Index     int     `json:"index"`
	Content   string  `json:"content"`
	Tokens    []int32 `json:"tokens"`
	Slot      int     `json:"id_slot"`
	Stop      bool    `json:"stop"`
	Predicted int     `json:"tokens_predicted"`
	Evaluated int     `json:"tokens_evaluated"`
	*ended
	Probabilities []probability `json:"completion_probabilities,omitempty"`
}

// ended is the last piece of an answer.
type ended struct {
	Model     string          `json:"model"`
	Settings  settings        `json:"generation_settings"`
	Prompt    string          `json:"prompt"`
	NewLine   bool            `json:"has_new_line"`
	StopType  string          `json:"stop_type"` // eos, limit or word
	StopWord  string          `json:"stopping_word"`
	Cached    int             `json:"tokens_cached"`
	Truncated bool            `json:"truncated"`
	Timings   *report.Timings `json:"timings"`
}

// probability is a token of an answer.
type probability struct {
	alternative
	Top []alternative `json:"top_logprobs"`
}

type alternative struct {
	ID      int32   `json:"id"`
	Token   string  `json:"token"`
	Bytes   []int   `json:"bytes"`
	Logprob float64 `json:"logprob"`
}

func newAlternative(id int32, piece []byte, logprob float32) alternative {
	return alternative{id, strings.ToValidUTF8(string(piece), "\ufffd"), jsonwrite.ByteList(piece), jsonwrite.Finite(logprob)}
}

func probabilities(tokens []tts.Token) []probability {
	list := make([]probability, len(tokens))
	for i := range tokens {
		t := &tokens[i]
		list[i] = probability{newAlternative(t.ID, t.Bytes, t.Logprob), make([]alternative, len(t.Top))}
		for j, a := range t.Top {
			list[i].Top[j] = newAlternative(a.ID, a.Bytes, a.Logprob)
		}
	}
	return list
}

// note takes in an event.
func (c *encoder) note(e tts.Event) *told {
	for len(c.told) <= e.Choice {
		c.told = append(c.told, told{ids: []int32{}})
	}
	t, at := &c.told[e.Choice], e.Choice/c.n
	switch w := e.What.(type) {
	case tts.Opening:
		if c.prompts == nil {
			c.prompts = map[int]prompt{}
		}
		c.prompts[at] = prompt{ids: w.Prompt}
	case tts.Usage:
		p := c.prompts[at]
		p.cached += w.Cached
		c.prompts[at] = p
	case tts.TokenIDs:
		t.ids = append(t.ids, w...)
		t.predicted += len(w)
	case tts.Text:
		if !c.ids { // a stream's encoder does not get texts that are empty
			t.predicted += w.Sampled
		}
		t.line = t.line || strings.Contains(w.Text, "\n")
	case tts.End:
		t.end = w
	}
	return t
}

// last returns the end of a completion, with what is left of it.
func (c *encoder) last(i int, text string, tokens []tts.Token) any {
	t, p := &c.told[i], c.prompts[i/c.n]
	u := tts.Usage{Prompt: len(p.ids), Cached: p.cached, Completion: t.predicted}
	e := &ended{Model: c.name, Settings: newSettings(c.request), Prompt: c.model.Spell(p.ids), NewLine: t.line,
		StopType: "eos", StopWord: t.end.Stop, Cached: u.Cached, Timings: report.NewTimings(&t.end.Timing, u)}
	switch {
	case t.end.Finish.Cut():
		e.StopType = "limit"
	case t.end.Stop != "":
		e.StopType = "word"
	}
	whole := completion{Index: i, Content: text, Tokens: []int32{}, Stop: true, Predicted: u.Completion, Evaluated: u.Prompt, ended: e}
	if c.ids {
		whole.Tokens = t.ids
	}
	if c.probs && len(tokens) > 0 {
		whole.Probabilities = probabilities(tts.Said(tokens))
	}
	if len(c.only) == 0 {
		return whole
	}
	return picked(whole, c.only)
}

// picked returns fields of an answer; of those within others, which a slash names, under the whole name.
func picked(whole completion, names []string) any {
	raw, err := json.Marshal(whole)
	if err != nil {
		panic(err) // numbers and texts
	}
	out := map[string]json.RawMessage{}
	for _, name := range names {
		value, found := json.RawMessage(raw), true
		for part := range strings.SplitSeq(name, "/") {
			var in map[string]json.RawMessage
			if json.Unmarshal(value, &in) != nil {
				found = false
				break
			}
			if value, found = in[part]; !found {
				break
			}
		}
		if found {
			out[name] = value
		}
	}
	return out
}

func (c *encoder) Collect(e tts.Event) {
	c.note(e)
	c.choices.Collect(e)
}

func (c *encoder) Full(p *jsonwrite.Reply, _ tts.Usage) {
	one := func(i int) {
		ch := c.choices.List[i]
		p.Value(c.last(i, ch.Text(), ch.Tokens))
	}
	if !c.list {
		one(0)
		return
	}
	p.List(len(c.choices.List), one)
}

func (c *encoder) Event(e tts.Event) any {
	t := c.note(e)
	w, ok := e.What.(tts.Text)
	if !ok || w.Text == "" && w.Last {
		return nil // what the end has
	}
	piece := completion{Index: e.Choice, Content: w.Text, Tokens: t.ids, Predicted: t.predicted, Evaluated: len(c.prompts[e.Choice/c.n].ids)}
	t.ids = []int32{}
	if c.probs {
		piece.Probabilities = probabilities(tts.Said(w.Tokens))
	}
	return piece
}

func (c *encoder) KeepAlive() any { return completion{Tokens: []int32{}} }

func (c *encoder) End(_ tts.Usage, fault *api.Fault) any {
	if fault != nil {
		return api.Failure(fault)
	}
	var list jsonwrite.List
	for i := range c.told {
		list = append(list, jsonwrite.Event{Data: c.last(i, "", nil)})
	}
	return list
}
