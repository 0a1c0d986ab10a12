package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/tts"
)

// VerifierConfig names one reward model that judges what the models write.
// Exactly one of Path and Embedded is set.
type VerifierConfig struct {
	Name     string `koanf:"name"`     // API name; empty: the file's stem or the embedded name
	Path     string `koanf:"path"`     // GGUF file
	Embedded string `koanf:"embedded"` // a model inside the binary
	Format   string `koanf:"format"`   // what it reads and where its scores stand; empty: lutra
	Context  int    `koanf:"context"`  // longest sequence in tokens; 0: the model's own
}

// defaultVerifiers are the embedded reward models.
func defaultVerifiers() []VerifierConfig {
	var list []VerifierConfig
	for _, e := range embedded.Models() {
		if e.Role == embedded.Reward {
			list = append(list, VerifierConfig{Embedded: e.Name})
		}
	}
	return list
}

// validate's error begins with the key at fault.
func (v VerifierConfig) validate() error {
	if (v.Path == "") == (v.Embedded == "") {
		return fmt.Errorf("path: set either path or embedded")
	}
	if v.Context < 0 {
		return fmt.Errorf("context: %d is negative", v.Context)
	}
	_, err := v.format()
	return err
}

// model is the verifier as a model to load.
func (v VerifierConfig) model() ModelConfig {
	return ModelConfig{Name: v.Name, Path: v.Path, Embedded: v.Embedded, Context: v.Context}
}

func (v VerifierConfig) format() (tts.Format, error) {
	formats := tts.Formats()
	if v.Format == "" {
		return formats[0], nil
	}
	var names []string
	for _, f := range formats {
		if f.Name == v.Format {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return tts.Format{}, fmt.Errorf("format: %q is none of %s", v.Format, strings.Join(names, ", "))
}

// loadVerifier loads a reward model, unless it can read nothing that the
// models write: so the embedded one gives way to other people's models.
func (r *runtime) loadVerifier(cfg Config, v VerifierConfig, onStep func(string) func(batcher.StepStats)) error {
	format, err := v.format()
	if err != nil {
		return err
	}
	h, err := r.load(cfg, v.model(), onStep)
	if err != nil {
		return err
	}
	if h.reward, err = tts.NewReward(h.model, format); err != nil {
		_ = h.bundle.Close()
		return err
	}
	if !slices.ContainsFunc(r.hosts, func(g *host) bool { return h.reward.Reads(g.model) }) {
		r.log.Info().Str("verifier", h.bundle.Name).Msg("not used: the models have other vocabularies")
		return h.bundle.Close()
	}
	r.judges = append(r.judges, h)
	return nil
}

// verifiers are those that can judge what a model writes, the default first.
func (r *runtime) verifiers(m *tts.Model) tts.Verifiers {
	v := tts.Verifiers{ByName: make(map[string]tts.Scorer)}
	for _, h := range r.judges {
		if !h.reward.Reads(m) {
			continue
		}
		v.ByName[h.bundle.Name] = h.reward
		if v.Default == "" {
			v.Default = h.bundle.Name
		}
	}
	return v
}
