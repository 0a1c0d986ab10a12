package tts

import (
	"slices"
	"strings"
	"sync"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts/constrain"
	"github.com/lutra-lm/lutra/tts/structure"
	"github.com/lutra-lm/lutra/tts/text"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// Model is a language model ready to be asked in words: an engine with the
// tokenizer and the chat template that belong to its weights. It is immutable
// and may be used by many callers at once.
type Model struct {
	text.Speller // of its tokens
	Name         string
	Engine       *batcher.Engine
	Template     *template.Template // nil: the model knows no conversations
	Config       models.Config      // what the model is
	Stops        []string           // texts that end an answer in a conversation, besides the tokens that do
	MaxTurns     int                // latest exchanges of a conversation that the model reads well; 0: all
	Outputs      int                // width of a row of logits: Vocab, or the number of a reward model's scores
	Projection   models.Projection  // of a model that embeds
	Source       Source             // other machines that go on with a search's candidates, set before the model is used; nil: there are none
	Context      int                // tokens that prompt and completion may have together
	Formats      *constrain.Formats // what answers can be held to
	Identity     *models.Identity   // what its answers depend on; nil: it has no file

	samplingDefaults

	// Probes are the scorers that read what Engine computes while it generates; plans that name no
	// verifier use the first.
	Probes []NamedScorer

	Variant *models.Variant // what Engine computes by; nil: the model as it is

	adapt func(...models.Use) (*models.Variant, error)
	lines []int32 // tokens that hold a line's end
	// breakers finds the texts across which DRY counts no repetition.
	breakers *breakers
	forms    *forms // what the template has shown; nil: it is asked each time
}

// forms holds the findings of a template's probes.
type forms struct {
	sync.Mutex
	of     *template.Template
	calls  *toolcall.Format
	why    error // the reason why calls do not follow the template
	thinks text.Marks
}

// shown returns what probes of the template show.
func (m *Model) shown() (calls *toolcall.Format, thinks text.Marks, why error) {
	f := m.forms
	if f == nil {
		f = &forms{}
	}
	f.Lock()
	defer f.Unlock()
	if f.calls == nil || f.of != m.Template {
		f.of, f.thinks = m.Template, text.MarksOf(m.Template)
		f.calls, f.why = toolcall.Of(m.Template)
	}
	return f.calls, f.thinks, f.why
}

// NewModel ties a loaded bundle to the engine that runs it. Without an engine
// the model can be looked at, but not asked.
func NewModel(b *models.Bundle, e *batcher.Engine) *Model {
	m := &Model{
		Speller: text.NewSpeller(b.Tokenizer, b.Model.Config().Vocab), Name: b.Name, Engine: e, Template: b.Template, Stops: b.Stops, MaxTurns: b.MaxTurns,
		Identity: b.Identity, Formats: constrain.NewFormats(b.Tokenizer), Config: b.Model.Config(), Outputs: b.Model.Config().Outputs, Projection: b.Projection,
		adapt: b.Variant, forms: &forms{},
	}
	m.Between = m.ThoughtMarks
	if e != nil {
		m.Run(e)
	}
	m.lines = m.Holding([]string{"\n"})
	m.breakers = newBreakers(&m.Speller)
	return m
}

// Run has e run the model, before anybody asks it.
func (m *Model) Run(e *batcher.Engine) { m.Engine, m.Context = e, e.Limit() }

// With returns the model with adapters in place of those that it has, under the same name. A
// search of it stays on this machine. Errors: models.ErrAdapter.
func (m *Model) With(uses ...models.Use) (*Model, error) {
	v, err := m.adapt(uses...)
	if err != nil {
		return nil, err
	}
	with := *m
	with.Variant, with.Engine = v, m.Engine.With(v)
	if v != nil {
		with.Source = nil
	}
	return &with, nil
}

// ToolFormat returns how the model calls tools.
func (m *Model) ToolFormat() *toolcall.Format {
	f, _, _ := m.shown()
	return f
}

// CallsUnclear says why the template's calls of tools are not told from text, so that ToolFormat is only what is
// usual; nil: they are.
func (m *Model) CallsUnclear() error {
	_, _, why := m.shown()
	return why
}

// HasProbe tells whether one of the model's probes has a name.
func (m *Model) HasProbe(name string) bool {
	return slices.ContainsFunc(m.Probes, func(p NamedScorer) bool { return p.Name == name })
}

// wordsOf returns what constraints have to know of the model.
func wordsOf(m *Model) constrain.Words {
	return constrain.Words{Tokenizer: m.Tokenizer, Vocab: m.Vocab, Thinks: m.Thinks(), Thoughts: m.ThoughtMarks()}
}

// HeldTo returns a constraint that holds answers of the model to a format of it.
func (m *Model) HeldTo(f *structure.Format) sampling.Constraint {
	return m.Held(&constrain.Rules{Format: f}, false)
}

// Held returns a constraint that holds answers of the model to rules. thinking says that the
// prompt ends within a thought.
func (m *Model) Held(r *constrain.Rules, thinking bool) sampling.Constraint {
	return r.New(wordsOf(m), nil, thinking)
}

// DelimitersOf returns the tokens that hold one of stops: engines stop at them, so
// that nothing beyond a solution step is computed in vain.
func DelimitersOf(m *Model, stops []string) []int32 {
	if len(stops) == 1 && stops[0] == "\n" {
		return m.lines
	}
	return m.Holding(stops)
}

// ThoughtMarks returns what the model puts its thoughts between.
func (m *Model) ThoughtMarks() text.Marks {
	_, marks, _ := m.shown()
	return marks
}

// Thinks reports whether answers may begin with thoughts: the chat template knows
// what ends one.
func (m *Model) Thinks() bool { return !m.ThoughtMarks().None }

// ThinkingSwitches reports whether the chat template can switch thinking on and off.
func (m *Model) ThinkingSwitches() bool {
	return m.Template != nil && strings.Contains(m.Template.Source(), thinkingVariable)
}

// EndsInThought reports whether a prompt ends with the mark that begins a thought.
func EndsInThought(m *Model, prompt []int32) bool {
	marks := m.ThoughtMarks()
	return marks.EndsInThought(m.Tokenizer.Decode(prompt[max(0, len(prompt)-2*len(marks.Begin)):], true))
}
