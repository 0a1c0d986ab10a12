package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/tts/judge"
	"github.com/lutra-lm/lutra/tts/reward"
)

// Verifier names one reward model that scores what the models write, or a probe that reads the states
// of one of them. Exactly one of Path, Embedded and Probe is set.
type Verifier struct {
	Name     string `yaml:"name"`     // API name; empty: the file's stem or the embedded name
	Path     string `yaml:"path"`     // GGUF file, or a name on the hub, as Model's
	Embedded string `yaml:"embedded"` // a model or a probe inside the binary
	Probe    string `yaml:"probe"`    // GGUF file of a probe
	Format   string `yaml:"format"`   // its prompt and where its scores are; empty: as the file says, else lutra
	// Separator ends a solution step in text that was not searched for; empty: as the file says, else the format's.
	Separator string `yaml:"separator"`
	Context   int    `yaml:"context"` // longest sequence in tokens; 0: the model's own
	Packing   string `yaml:"packing"` // as Model's
	Backend   string `yaml:"backend"` // as Model's

	judge.Criteria // of one that writes critiques: format think-prm, gen-prm or rubric
}

// defaultVerifiers returns the embedded probes and reward models.
func defaultVerifiers() []Verifier {
	var list []Verifier
	for _, e := range embedded.Probes() {
		list = append(list, Verifier{Embedded: e.Name})
	}
	for _, e := range embedded.Models() {
		if e.Role == embedded.Reward {
			list = append(list, Verifier{Embedded: e.Name})
		}
	}
	return list
}

// validate checks the settings. Its error begins with the key at fault.
func (v Verifier) validate() error {
	if set := slices.DeleteFunc([]string{v.Path, v.Embedded, v.Probe}, func(s string) bool { return s == "" }); len(set) != 1 {
		return fmt.Errorf("path: set either path, embedded or probe")
	}
	if v.Probe != "" {
		return v.validateProbe()
	}
	if _, _, err := v.Model().Remote(); err != nil {
		return fmt.Errorf("path: %w", err)
	}
	if v.Context < 0 || v.Context > mostContext {
		return fmt.Errorf("context: %d is outside 0..%d", v.Context, mostContext)
	}
	if err := checkPacking(v.Packing); err != nil {
		return err
	}
	if _, err := v.FormatFor(models.Verifier{}); err != nil {
		return err
	}
	if v.Criteria != (judge.Criteria{}) && !slices.Contains(judge.Formats(), v.Format) {
		return fmt.Errorf("format: rubric, template, scale, steps, critiques and max_tokens are for %s", strings.Join(judge.Formats(), ", "))
	}
	return nil
}

// validateProbe checks that nothing is said of a probe which is of reward models alone.
func (v Verifier) validateProbe() error {
	if v != (Verifier{Name: v.Name, Probe: v.Probe}) {
		return fmt.Errorf("probe: of a probe there is a name alone; format, separator, context, packing, backend and rubrics are for reward models")
	}
	return nil
}

// IsProbe tells whether the verifier is named as a probe. A file at Path may turn out to be one.
func (v Verifier) IsProbe() bool {
	return v.Probe != "" || slices.ContainsFunc(embedded.Probes(), func(e embedded.Entry) bool { return e.Name == v.Embedded })
}

// Model returns the verifier as a model to load, or as a probe's file.
func (v Verifier) Model() Model {
	return Model{Name: v.Name, Path: cmp.Or(v.Path, v.Probe), Embedded: v.Embedded, Context: v.Context, Packing: v.Packing, Backend: v.Backend, Draft: noDraft}
}

// FormatFor returns the format of the model: as configured, else as its file says.
func (v Verifier) FormatFor(file models.Verifier) (reward.Format, error) {
	formats := reward.Formats()
	name := cmp.Or(v.Format, file.Format, formats[0].Name)
	i := slices.IndexFunc(formats, func(f reward.Format) bool { return f.Name == name })
	if i < 0 {
		var known []string
		for _, f := range formats {
			known = append(known, f.Name)
		}
		return reward.Format{}, fmt.Errorf("format: %q is none of %s", name, strings.Join(known, ", "))
	}
	f := formats[i]
	f.Separator = cmp.Or(v.Separator, file.Separator, f.Separator)
	if f.Judge = (judge.Options{Name: v.Model().APIName(), Format: f.Name, Criteria: v.Criteria}); f.Writes {
		return f, f.Judge.Validate()
	}
	return f, nil
}
