package responses

import (
	"encoding/json"
)

// record is a complete response with what led to it. It does not change.
type record struct {
	response response
	input    []*item // all that the model has read, the oldest first
	steps    []step

	encrypted bool // its thoughts have encrypted contents
}

// step is what an event added to the output: so many bytes of the text of an item, and
// so many tokens with their log-probabilities. All other events follow from these.
type step struct{ item, bytes, tokens int32 }

// keptAlive is the item of a step that added nothing.
const keptAlive = -1

// all yields the items that a record holds.
func (r *record) all(yield func(*item) bool) {
	for _, list := range [][]*item{r.input, r.response.Output} {
		for _, it := range list {
			if !yield(it) {
				return
			}
		}
	}
}

// size returns about how many bytes a record holds besides its items.
func (r *record) size() int {
	p := &r.response
	n := 2048 + 12*len(r.steps) + 16*(len(r.input)+len(p.Output)) + len(p.Model) + len(p.Metadata) + len(p.ToolChoice) + len(p.User)
	if p.Instructions != nil {
		n += len(*p.Instructions)
	}
	for _, v := range []any{p.Tools, p.Text} { // parts of a request
		raw, _ := json.Marshal(v)
		n += 2 * len(raw)
	}
	return n
}
