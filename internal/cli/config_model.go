package cli

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models/embedded"
)

// ModelConfig names one model to serve. Exactly one of Path and Embedded is set.
type ModelConfig struct {
	Name     string   `yaml:"name"`     // API name; empty: the file's stem or the embedded name
	Path     string   `yaml:"path"`     // GGUF file
	Embedded string   `yaml:"embedded"` // a model inside the binary
	Aliases  []string `yaml:"aliases"`  // further API names
	Packing  string   `yaml:"packing"`  // ternary weights: auto, i1 (1.6 bit), i2 (2 bit) or stored (the file's own precision)
	Context  int      `yaml:"context"`  // longest sequence in tokens; 0: the model's own
	Draft    string   `yaml:"draft"`    // as Engine.DraftModel, for this model; "none": none
}

// noDraft as a model's draft says that no model drafts for it.
const noDraft = "none"

// draftOf is the model that drafts for m, if one does.
func (c *Config) draftOf(m ModelConfig) (d ModelConfig, ok bool) {
	name := cmp.Or(m.Draft, c.Engine.DraftModel)
	if name == "" || name == noDraft || c.Engine.Speculation == batcher.SpeculateOff {
		return d, false
	}
	d = draftNamed(name)
	itself := d.Embedded == m.Embedded && filepath.Clean(d.Path) == filepath.Clean(m.Path)
	return d, m.Draft != "" || !itself
}

// draftNamed is the model that a configuration names: embedded, or a file.
func draftNamed(name string) ModelConfig {
	if isEmbedded(name) {
		return ModelConfig{Embedded: name}
	}
	return ModelConfig{Path: name}
}

// defaultModels are the embedded generators, the default first.
func defaultModels() []ModelConfig {
	var list []ModelConfig
	for _, e := range embedded.Models() {
		if e.Role == embedded.Generator {
			list = append(list, ModelConfig{Embedded: e.Name})
		}
	}
	return list
}

func embeddedNames() []string {
	var names []string
	for _, e := range embedded.Models() {
		names = append(names, e.Name)
	}
	return names
}

func isEmbedded(name string) bool { return slices.Contains(embeddedNames(), name) }

// names are those of all models to load, in the order of loading. One that
// drafts for several is loaded as often.
func (c *Config) names() (names []string) {
	for _, m := range c.Models {
		names = append(names, m.apiName())
		if d, ok := c.draftOf(m); ok {
			names = append(names, d.apiName())
		}
	}
	for _, v := range c.Verifiers {
		names = append(names, v.model().apiName())
	}
	return names
}

// modelFlag reads --model [NAME=]FILE; an embedded model's name is one too.
func modelFlag(arg string) (ModelConfig, error) {
	name, path, ok := strings.Cut(arg, "=")
	if _, err := os.Stat(arg); err == nil || !ok {
		name, path = "", arg // a file whose name has a = is one too
	}
	if isEmbedded(path) {
		return ModelConfig{Name: name, Embedded: path}, nil
	}
	if err := modelFile(path); err != nil {
		return ModelConfig{}, usage.Errorf("--model: %w", err)
	}
	return ModelConfig{Name: name, Path: path}, nil
}

// apiName is the name clients ask for.
func (m ModelConfig) apiName() string {
	switch {
	case m.Name != "":
		return m.Name
	case m.Embedded != "":
		return m.Embedded
	}
	return strings.TrimSuffix(filepath.Base(m.Path), filepath.Ext(m.Path))
}
