package tts

import (
	"context"
)

// What tests outside of the package see of its inside. They are outside because
// they search with package reward, which imports this one.

var (
	Exchanges = exchanges
	From      = from
)

func (m *Model) Reserve(maxTokens int) int { return reserveFor(m, maxTokens) }

func (m *Model) Rendered(ctx context.Context, p *Prompt, limit int) (*Prepared, error) {
	return renderPrompt(ctx, m, p, limit)
}

func (m *Model) ThinksAfter(prompt []int32) bool { return EndsInThought(m, prompt) }
