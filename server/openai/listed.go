package openai

import (
	"strconv"

	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
)

// listed is what vLLM's return_token_ids and prompt_logprobs add to an answer. nil: nothing.
type listed struct {
	ids     bool
	n       int // choices of each prompt
	prompts map[int][]int32
	scores  map[int]tts.PromptScores
	choices map[int][]int32 // tokens of each choice; of a stream, those that no chunk has had
	told    map[int]bool    // choices of a stream whose prompt a chunk has had
}

// listed reads what an answer is to list besides its text. The count of choices comes later.
func (f reader) listed(req *tts.Request) *listed {
	f.Bool("return_token_ids", &req.TokenIDs)
	if raw := f.Raw("prompt_logprobs"); f.Int("prompt_logprobs", &req.PromptTop, 0, fields.MaxTopLogprobs) {
		req.ScorePrompt = true
		if string(f.Raw("stream")) == "true" && string(raw) != "0" {
			f.Fail(jsonread.CodeValue, "prompt_logprobs", "a stream does not list them.")
		}
	}
	if !req.TokenIDs && !req.ScorePrompt {
		return nil
	}
	return &listed{ids: req.TokenIDs, prompts: map[int][]int32{}, scores: map[int]tts.PromptScores{}, choices: map[int][]int32{}, told: map[int]bool{}}
}

// note takes in an event. It reports whether no other part of the answer has to do with it.
func (l *listed) note(e tts.Event) bool {
	switch w := e.What.(type) {
	case tts.Opening:
		if l != nil && l.ids {
			l.prompts[e.Choice/l.n] = w.Prompt
		}
	case tts.PromptScores:
		if l != nil {
			l.scores[e.Choice/l.n] = w
		}
		return true
	case tts.TokenIDs:
		if l != nil {
			l.choices[e.Choice] = append(l.choices[e.Choice], w...)
		}
		return true
	}
	return false
}

// chunk returns the tokens of a choice that come with its next chunk, and before them the prompt's.
func (l *listed) chunk(choice int) (prompt, tokens []int32) {
	if l == nil || !l.ids {
		return nil, nil
	}
	if !l.told[choice] {
		prompt, l.told[choice] = l.prompts[choice/l.n], true
	}
	tokens = l.choices[choice]
	delete(l.choices, choice)
	return prompt, tokens
}

// writeTokens adds the tokens of a whole choice to it.
func (l *listed) writeTokens(p *jsonwrite.Reply, choice int) {
	if l != nil && l.ids {
		writeIDs(p, "token_ids", l.choices[choice])
	}
}

// writePrompt adds what is listed of a prompt to an object.
func (l *listed) writePrompt(p *jsonwrite.Reply, prompt int) {
	if l == nil {
		return
	}
	if l.ids {
		writeIDs(p, "prompt_token_ids", l.prompts[prompt])
	}
	scores, ok := l.scores[prompt]
	if !ok {
		return
	}
	p.Raw(`,"prompt_logprobs":`)
	p.List(len(scores), func(i int) { writeScored(p, &scores[i]) })
}

func writeIDs(p *jsonwrite.Reply, name string, ids []int32) {
	p.Raw(`,"` + name + `":`)
	p.List(len(ids), func(i int) { p.Int(ids[i]) })
}

// writeScored writes a token of a prompt as vLLM does: by their ids, it and the likeliest in its place. What nothing
// predicts is null.
func writeScored(p *jsonwrite.Reply, t *tts.Token) {
	if !t.Known {
		p.Raw("null")
		return
	}
	one := func(begin string, id int32, logprob float32, rank int, piece []byte) {
		p.Raw(begin + `"` + strconv.Itoa(int(id)) + `":{"logprob":`)
		p.Value(jsonwrite.Finite(logprob))
		p.Raw(`,"rank":` + strconv.Itoa(rank) + `,"decoded_token":`)
		p.Bytes(piece)
		p.Raw("}")
	}
	one("{", t.ID, t.Logprob, t.Rank, t.Bytes)
	for i := range t.Top {
		if a := &t.Top[i]; a.ID != t.ID {
			one(",", a.ID, a.Logprob, i+1, a.Bytes)
		}
	}
	p.Raw("}")
}
