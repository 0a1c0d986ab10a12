package anthropic

import "time"

// card describes a model in lists.
type card struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Name      string `json:"display_name"`
	CreatedAt string `json:"created_at"`
	Lifecycle string `json:"lifecycle"`
	MaxInput  int    `json:"max_input_tokens"`
	MaxTokens int    `json:"max_tokens"`
}

// newCard describes a model with so large a context, which prompt and answer share.
func newCard(name string, since time.Time, context int) card {
	return card{ID: name, Type: "model", Name: name, CreatedAt: since.UTC().Format(time.RFC3339), Lifecycle: "active", MaxInput: context, MaxTokens: context}
}

// list is all models as one page.
type list struct {
	Data  []card  `json:"data"`
	More  bool    `json:"has_more"` // never
	First *string `json:"first_id"`
	Last  *string `json:"last_id"`
}

// newList lists models.
func newList(cards []card) list {
	l := list{Data: cards}
	if n := len(cards); n > 0 {
		l.First, l.Last = &cards[0].ID, &cards[n-1].ID
	}
	return l
}
