package registry

// Card is OpenAI's model object, with vLLM's max_model_len and root.
type Card struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Root        string `json:"root"` // the model behind an alias
	MaxModelLen int    `json:"max_model_len"`
	Task        string `json:"task"` // generate; reward: scores answers; embed: makes vectors; score: scores documents
	Offer       *offer `json:"lutra,omitempty"`
}

// Writes tells whether the model is a generator.
func (c *Card) Writes() bool { return c.Task == taskGenerate }

// Cards returns those of all names, in the order in which they were registered.
func (r *Registry) Cards() []Card {
	cards := make([]Card, len(r.names))
	for i, name := range r.names {
		cards[i] = r.Card(name, r.byName[name])
	}
	return cards
}

// Card returns that of a model under one of its names.
func (r *Registry) Card(id string, m *Model) Card {
	return Card{ID: id, Object: "model", Created: r.created, OwnedBy: "lutra", Root: m.Name, MaxModelLen: m.Context, Task: m.task(), Offer: m.offer}
}
