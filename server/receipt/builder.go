package receipt

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"github.com/lutra-lm/lutra/tts"
)

// Builder makes the receipt of one answer.
type Builder struct {
	receipt  Receipt
	hashes   bool // alone
	n        int  // choices of a prompt
	choices  []choice
	outcomes []*tts.Outcome // of each prompt; nil: there is no search
}

// choice collects a choice of the answer.
type choice struct {
	ids    []int32
	text   hash.Hash
	finish tts.Finish
}

// NewBuilder begins a receipt that has all that r says, of n choices for each of
// prompts prompts. Of its request and the answer, hashes makes it hold hashes alone.
func NewBuilder(r Receipt, body []byte, hashes bool, prompts, n int) *Builder {
	b := &Builder{receipt: r, hashes: hashes, n: n, choices: make([]choice, prompts*n), outcomes: make([]*tts.Outcome, prompts)}
	b.receipt.Version, b.receipt.Hash, b.receipt.Prompts = Version, sum(body), make([]Prompt, prompts)
	if !hashes {
		b.receipt.Request = string(body)
	}
	for i := range b.choices {
		b.choices[i].text = sha256.New()
	}
	return b
}

// Take takes in a token of a choice. A choice's tokens come in their order; goroutines may take tokens of
// different choices at once.
func (b *Builder) Take(choice int, id int32) {
	c := &b.choices[choice]
	c.ids = append(c.ids, id)
}

// Filter takes in the events of the answer as they pass.
func (b *Builder) Filter(e tts.Event, emit func(tts.Event) bool) bool {
	switch w := e.What.(type) {
	case tts.Opening:
		b.receipt.Prompts[e.Choice/b.n] = Prompt{len(w.Prompt), hashOf(w.Prompt)}
	case tts.Text:
		b.choices[e.Choice].text.Write([]byte(w.Text))
	case tts.End:
		b.choices[e.Choice].finish = w.Finish
	case *tts.Outcome:
		b.outcomes[e.Choice/b.n] = w
	}
	return emit(e)
}

// Receipt returns what has been built, once the answer is complete; nil for a nil builder.
func (b *Builder) Receipt() *Receipt {
	if b == nil {
		return nil
	}
	r := b.receipt
	r.Choices = make([]Choice, len(b.choices))
	for i := range b.choices {
		c := &b.choices[i]
		out := Choice{Index: i, Text: hex.EncodeToString(c.text.Sum(nil)), Finish: string(c.finish)}
		if o := b.outcomes[i/b.n]; o != nil {
			chosen := o.Choices[i%b.n]
			c.ids = chosen.IDs
			out.Candidate, out.Score = new(chosen.Index), new(finite(chosen.Score))
		}
		b.tokens(&out, c.ids)
		r.Choices[i] = out
	}
	if r.Search == nil {
		return &r
	}
	search := *r.Search
	search.Stopped = make([]string, len(b.outcomes))
	r.Search = &search
	for p, o := range b.outcomes {
		if o == nil {
			continue
		}
		search.Stopped[p], search.Degraded = string(o.Reason), search.Degraded || o.Degraded
		for _, c := range o.Candidates {
			out := Choice{Index: c.Index, Prompt: p, Finish: string(c.Finish), Score: new(finite(c.Score))}
			for _, s := range c.StepScores {
				out.Steps = append(out.Steps, finite(s))
			}
			b.tokens(&out, c.IDs)
			r.Candidates = append(r.Candidates, out)
		}
	}
	return &r
}

func (b *Builder) tokens(c *Choice, ids []int32) {
	c.Tokens, c.Hash = len(ids), hashOf(ids)
	if !b.hashes {
		c.IDs = ids
	}
}

// finite returns v, or the number next to it that JSON has.
func finite(v float32) float32 {
	const most = 3e38
	if v != v {
		return -most
	}
	return max(-most, min(v, most))
}

// hashOf returns the SHA-256 of token ids.
func hashOf(ids []int32) string {
	raw := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(id))
	}
	return sum(raw)
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// NewChoice returns a choice of these tokens, without a text.
func NewChoice(index int, ids []int32, finish string) Choice {
	return Choice{Index: index, Tokens: len(ids), Hash: hashOf(ids), IDs: ids, Finish: finish}
}
