package registry

import (
	"github.com/lutra-lm/lutra/tts"
)

// addThinking registers m with thinking switched on and off. A preset of such a name
// goes first.
func (r *Registry) addThinking(m *Model) error {
	if !m.ThinkingSwitches() {
		return nil
	}
	m.switched = map[string]*Model{}
	for _, word := range []string{"think", "nothink"} {
		v := *m
		v.Thinking = new(thinkingWords[word])
		m.switched[word] = &v
		if _, preset := r.presets[word]; preset {
			continue
		}
		if err := r.add(m.Name+"+"+word, &v); err != nil {
			return err
		}
	}
	return nil
}

// Switch switches thinking in a prompt as the model's name says, if the prompt does
// not say itself.
func (m *Model) Switch(p *tts.Prompt) {
	if m.Thinking != nil {
		p.SwitchThinking(*m.Thinking)
	}
}
