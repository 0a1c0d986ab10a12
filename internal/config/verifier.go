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

// Verifier names one reward model that scores what the models write.
// Exactly one of Path and Embedded is set.
type Verifier struct {
	Name     string `yaml:"name"`     // API name; empty: the file's stem or the embedded name
	Path     string `yaml:"path"`     // GGUF file, or a name on the hub, as Model's
	Embedded string `yaml:"embedded"` // a model inside the binary
	Format   string `yaml:"format"`   // its prompt and where its scores are; empty: as the file says, else lutra
	// Separator ends a solution step in text that was not searched for; empty: as the file says, else the format's.
	Separator string `yaml:"separator"`
	Context   int    `yaml:"context"` // longest sequence in tokens; 0: the model's own
	Packing   string `yaml:"packing"` // as Model's
	Backend   string `yaml:"backend"` // as Model's

	judge.Criteria // of one that writes critiques: format think-prm, gen-prm or rubric
}

// defaultVerifiers returns the embedded reward models.
func defaultVerifiers() []Verifier {
	var list []Verifier
	for _, e := range embedded.Models() {
		if e.Role == embedded.Reward {
			list = append(list, Verifier{Embedded: e.Name})
		}
	}
	return list
}

// validate checks the settings. Its error begins with the key at fault.
func (v Verifier) validate() error {
	if (v.Path == "") == (v.Embedded == "") {
		return fmt.Errorf("path: set either path or embedded")
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

// Model returns the verifier as a model to load.
func (v Verifier) Model() Model {
	return Model{Name: v.Name, Path: v.Path, Embedded: v.Embedded, Context: v.Context, Packing: v.Packing, Backend: v.Backend, Draft: noDraft}
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
