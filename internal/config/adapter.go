package config

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/huggingface"
	"github.com/lutra-lm/lutra/server/registry"
)

// Adapter names a LoRA of a model.
type Adapter struct {
	Name  string  `yaml:"name"`  // behind the model's name and a colon, and by itself; empty: the file's stem
	Path  string  `yaml:"path"`  // GGUF file, or directory that PEFT has saved
	Scale float64 `yaml:"scale"` // what it is multiplied by under its name; 0: 1
}

// APIName returns the name clients ask for.
func (a Adapter) APIName() string {
	if a.Name != "" {
		return a.Name
	}
	return models.NameOf(a.Path)
}

// Factor returns what the adapter is multiplied by under its name.
func (a Adapter) Factor() float32 {
	if a.Scale == 0 {
		return 1
	}
	return float32(a.Scale)
}

// mostAdapters bounds the adapters of a model.
const mostAdapters = 256

// adapterFlag reads --lora [NAME=]FILE[:SCALE].
func adapterFlag(arg string) (a Adapter, err error) {
	name, path, ok := strings.Cut(arg, "=")
	if _, err := os.Stat(arg); err == nil || !ok {
		name, path = "", arg
	}
	a = Adapter{Name: name, Path: path}
	if at := strings.LastIndexByte(path, ':'); at > 0 {
		if _, missing := os.Stat(path); missing != nil {
			if scale, err := strconv.ParseFloat(path[at+1:], 64); err == nil {
				a.Path, a.Scale = path[:at], scale
				if scale == 0 {
					return a, usage.Errorf("--lora: %s: a scale of 0 is no adapter", usage.Brief(arg))
				}
			}
		}
	}
	if err := a.validate(); err != nil {
		return a, usage.Errorf("--lora: %w", err)
	}
	return a, nil
}

// validate reports the first fault.
func (a Adapter) validate() error {
	switch {
	case a.Path == "":
		return errors.New("path: name a file")
	case a.Scale-a.Scale != 0 || a.Scale > registry.MaxScale || a.Scale < -registry.MaxScale:
		return fmt.Errorf("scale: %v is outside -%g..%g", a.Scale, registry.MaxScale, registry.MaxScale)
	case strings.ContainsAny(a.Name, ":+"):
		return fmt.Errorf("name: %q has a colon or a plus", usage.Brief(a.Name))
	case huggingface.IsAdapter(a.Path):
		return nil
	}
	return CheckModelFile(a.Path)
}

// validateAdapters returns the faults of a model's adapters.
func (m Model) validateAdapters() (faults []error) {
	if len(m.Adapters) > mostAdapters {
		return []error{fmt.Errorf("adapters: %d, more than %d", len(m.Adapters), mostAdapters)}
	}
	for i, a := range m.Adapters {
		if err := a.validate(); err != nil {
			faults = append(faults, fmt.Errorf("adapters[%d].%w", i, err))
		}
	}
	return faults
}

// readAdapters gives the first model those of --lora.
func (s *flags) readAdapters(args []string) {
	s.Replace("models[0].adapters", "--lora")
	var list []Adapter
	for _, arg := range args {
		a, err := adapterFlag(arg)
		if err != nil {
			s.Refuse(err)
		}
		list = append(list, a)
	}
	if len(s.config.Models) > 0 {
		s.config.Models[0].Adapters = list
	}
}
