package registry

import "github.com/lutra-lm/lutra/tts"

// The words that may follow the name of a model whose chat template switches
// thinking, beside that of a preset: bonsai-1.7b+nothink+sc8.
var thinkingWords = map[string]bool{"think": true, "nothink": false}

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

// find returns the model of a name without a preset, nil if there is none.
func (r *Registry) find(name string) *Model {
	if m := r.plain(name); m != nil {
		return m
	}
	if base, word := lastWord(name); word != "" {
		if m := r.plain(base); m != nil && m.Thinking == nil {
			return m.switched[word]
		}
	}
	return nil
}

// plain returns the model of a name without words behind it.
func (r *Registry) plain(name string) *Model {
	switch {
	case name == "", name == defaultName:
		return r.generator
	case r.searching[name]:
		return nil
	}
	return r.byName[name]
}

// Switch switches thinking in a prompt as the model's name says, if the prompt does
// not say itself.
func (m *Model) Switch(p *tts.Prompt) {
	if m.Thinking != nil {
		p.SwitchThinking(*m.Thinking)
	}
}
