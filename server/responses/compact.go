package responses

import (
	"github.com/google/uuid"

	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
)

// mostSummary bounds the tokens of a summary, together with a quarter of the context.
const mostSummary = 1024

// compaction writes the answer of a model that was asked for a summary: an item that
// stands in the place of a conversation. It is not streamed.
type compaction struct {
	*encoder
	kept []*item // that the summary does not replace
}

// compacted is a conversation that is shorter.
type compacted struct {
	ID        string  `json:"id"`
	Object    string  `json:"object"`
	CreatedAt int64   `json:"created_at"`
	Output    []*item `json:"output"`
	Usage     *usage  `json:"usage"`
}

// compact reads POST /v1/responses/compact for a model: the request is for a summary of
// the conversation, the oldest of which is left out if it does not fit.
func (f fields) compact(req *tts.Request, m *tts.Model, stored Owned) (*compaction, *settings) {
	s := newSettings()
	s.Store = false
	f.Text("instructions", &s.Instructions)
	c := f.conversation(s, stored)
	c.say(roleUser, compactRequest)
	s.instruct(&req.Prompt, c.messages)
	req.Prompt.Truncate = true
	req.N, req.Sampling.TopP, req.Sampling.MaxTokens = 1, 1, min(mostSummary, max(m.Context/4, 1))
	f.Ignore("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "service_tier")
	w := &compaction{encoder: newEncoder(m.Name, req, s, stored)}
	for _, it := range s.items {
		if it.Type == itemMessage && (it.Role == roleSystem || it.Role == roleDeveloper) {
			w.kept = append(w.kept, it)
		}
	}
	return w, s
}

// Full writes the items that go on in the conversation's place.
func (c *compaction) Full(p *jsonwrite.Reply, u tts.Usage) {
	summary := ""
	for _, it := range c.response.Output {
		if it.Type == itemMessage {
			summary += it.written()
		}
	}
	p.Value(compacted{
		ID: "cmpr_" + uuid.NewString(), Object: "response.compaction", CreatedAt: c.response.CreatedAt, Usage: newUsage(u),
		Output: append(c.kept[:len(c.kept):len(c.kept)], &item{ID: newID(itemCompaction), Type: itemCompaction, Encrypted: opaque(summary)}),
	})
}
