package config

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/hub"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/weights"
)

// Model names one model to serve. Exactly one of Path and Embedded is set.
type Model struct {
	Name     string    `yaml:"name"`     // API name; empty: the file's stem, the embedded name, or the one on the hub
	Path     string    `yaml:"path"`     // GGUF file or directory of safetensors, hf:OWNER/REPO[:FILE|:QUANT], ollama:NAME[:TAG], or a name of the catalogue
	Embedded string    `yaml:"embedded"` // a model inside the binary
	Aliases  []string  `yaml:"aliases"`  // further API names
	Packing  string    `yaml:"packing"`  // ternary weights: auto, i1 (1.6 bit), i2 (2 bit) or stored (the file's own precision)
	Context  int       `yaml:"context"`  // longest sequence in tokens; 0: the model's own
	Backend  string    `yaml:"backend"`  // as Config.Backend, for this model; empty: that
	Draft    string    `yaml:"draft"`    // as Engine.DraftModel, for this model; "none": none
	Adapters []Adapter `yaml:"adapters"` // that requests may choose
	Pin      bool      `yaml:"pin"`      // it is never unloaded to make room
	// KeepAlive is Loading.KeepAlive for this model; empty: that.
	KeepAlive string `yaml:"keep_alive"`
	// Sampling holds for requests that do not say otherwise; what it does not name is the file's.
	Sampling sampling.Config `yaml:"sampling"`
	// Published has the sampling settings of the place that the model was pulled from. They count more
	// than the file's.
	Published sampling.Config `yaml:"-"`
	// Warnings say what of Published counts for nothing. Whoever loads the model logs them.
	Warnings []string `yaml:"-"`
	// Metadata replaces what the file says of itself: true or false, a number, or text.
	Metadata map[string]string `yaml:"metadata"`
}

// Overrides returns Metadata as a file has it.
func (m Model) Overrides() gguf.Metadata {
	md := gguf.Metadata{}
	for key, text := range m.Metadata {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			md[key] = n
		} else if x, err := strconv.ParseFloat(text, 64); err == nil {
			md[key] = x
		} else if text == "true" || text == "false" {
			md[key] = text == "true"
		} else {
			md[key] = text
		}
	}
	return md
}

// Packed returns Packing, by one name where several mean the same.
func (m Model) Packed() string {
	if m.Packing == "" || m.Packing == weights.PackingI2 {
		return weights.PackingAuto
	}
	return m.Packing
}

// noDraft is the value of a model's draft if none drafts for it.
const noDraft = "none"

// DraftOf returns the model that drafts for m, if there is one.
func (c *Config) DraftOf(m Model) (d Model, ok bool) {
	name := cmp.Or(m.Draft, c.Engine.DraftModel)
	if name == "" || name == noDraft || c.Engine.Speculation == batcher.SpeculateOff {
		return d, false
	}
	d = ModelNamed(name)
	itself := d.Embedded == m.Embedded && filepath.Clean(d.Path) == filepath.Clean(m.Path)
	return d, m.Draft != "" || !itself
}

// ModelNamed returns an embedded model by its name, or a file by its path.
func ModelNamed(name string) Model {
	if IsEmbedded(name) {
		return Model{Embedded: name}
	}
	return Model{Path: name}
}

// DefaultModels returns the embedded generators that are loaded unasked, the default first.
func DefaultModels() []Model {
	var list []Model
	for _, e := range embedded.Models() {
		if e.Role == embedded.Generator && !e.Optional {
			list = append(list, Model{Embedded: e.Name})
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

// IsEmbedded reports whether an embedded model has the name.
func IsEmbedded(name string) bool { return slices.Contains(embeddedNames(), name) }

// Names returns the names of all models to load, in the order of loading. Models of one file are in
// memory once.
func (c *Config) Names() (names []string) {
	for _, m := range c.Models {
		names = append(names, m.APIName())
		if d, ok := c.DraftOf(m); ok {
			names = append(names, d.APIName())
		}
	}
	for _, v := range c.Verifiers {
		if !v.IsProbe() { // which takes no time
			names = append(names, v.Model().APIName())
		}
	}
	return names
}

// ModelFlag reads --model [NAME=]FILE, or the name of an embedded model or of one on the hub.
func ModelFlag(arg string) (Model, error) { return modelArgument("--model", arg) }

// modelArgument does as ModelFlag for any flag, which errors name.
func modelArgument(flag, arg string) (Model, error) {
	name, path, ok := strings.Cut(arg, "=")
	if _, err := os.Stat(arg); err == nil || !ok || hub.IsName(arg) {
		name, path = "", arg // a file's name may contain a =
	}
	if IsEmbedded(path) {
		return Model{Name: name, Embedded: path}, nil
	}
	m := Model{Name: name, Path: path}
	if _, remote, err := m.Remote(); err != nil {
		return Model{}, usage.Errorf("%s: %w", flag, err)
	} else if remote {
		return m, nil
	}
	if err := CheckModelFile(path); err != nil {
		return Model{}, usage.Errorf("%s: %w", flag, err)
	}
	return m, nil
}

// Open opens the model's file, or the embedded model.
func (m Model) Open() (*gguf.File, error) {
	if m.Embedded != "" {
		return embedded.Open(m.Embedded)
	}
	if err := CheckModelFile(m.Path); err != nil {
		return nil, err
	}
	return models.Open(m.Path)
}

// APIName returns the name clients ask for.
func (m Model) APIName() string {
	switch {
	case m.Name != "":
		return m.Name
	case m.Embedded != "":
		return m.Embedded
	}
	if ref, remote, err := m.Remote(); err == nil && remote {
		if hub.IsName(m.Path) {
			return ref.Name()
		}
		return m.Path
	}
	return models.NameOf(m.Path)
}
