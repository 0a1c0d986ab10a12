package anthropic

import "time"

// Card describes a model in lists.
type Card struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Name      string `json:"display_name"`
	CreatedAt string `json:"created_at"`
	Lifecycle string `json:"lifecycle"`
	MaxInput  int    `json:"max_input_tokens"`
	MaxTokens int    `json:"max_tokens"`
}

// NewCard describes a model with so large a context, which prompt and answer share.
func NewCard(name string, since time.Time, context int) Card {
	return Card{ID: name, Type: "model", Name: name, CreatedAt: since.UTC().Format(time.RFC3339), Lifecycle: "active", MaxInput: context, MaxTokens: context}
}

// List is all models as one page.
type List struct {
	Data  []Card  `json:"data"`
	More  bool    `json:"has_more"` // never
	First *string `json:"first_id"`
	Last  *string `json:"last_id"`
}

// NewList lists models.
func NewList(cards []Card) List {
	l := List{Data: cards}
	if n := len(cards); n > 0 {
		l.First, l.Last = &cards[0].ID, &cards[n-1].ID
	}
	return l
}
