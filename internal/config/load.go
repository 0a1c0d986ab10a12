package config

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/settings"
)

// Load merges defaults, the file (none if path is empty), the environment and the
// flags that were set. Its error joins all faults, each with the place it comes from;
// faults of flags are usage errors.
func Load(path string, environ []string, set *pflag.FlagSet) (Config, error) {
	c := Default()
	s := settings.Of(&c, formerNames)
	if path != "" {
		if err := s.ReadFile(path); err != nil {
			return Config{}, err
		}
	}
	s.ReadEnvironment(environ, "LUTRA_KERNEL", "LUTRA_URL", "LUTRA_API_KEY") // which kernels read, and commands that ask a server
	if set != nil {
		f := flags{s, &c}
		f.read(set)
	}
	s.Check(c.Validate)
	if set != nil { // a command will read them
		s.Check(c.checkModelFiles)
	}
	if err := s.Err(); err != nil {
		return Config{}, err
	}
	c.warnings = s.Warnings
	return c, nil
}

// checkModelFiles sees that the models are there that are files of this machine, so that what is
// wrong is said with its line.
func (c *Config) checkModelFiles() error {
	var errs []error
	for i, m := range c.Models {
		if _, remote, err := m.Remote(); err != nil || remote || m.Embedded != "" {
			continue
		}
		if err := CheckModelFile(m.Path); err != nil {
			errs = append(errs, fmt.Errorf("models[%d].path: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// configKeys maps flags to the keys of config.yaml that they override.
var configKeys = map[string]string{
	"addr":          "server.addr",
	"api-key":       "server.api_keys",
	"api-keys-file": "server.api_keys_file",
	"backend":       "backend",
	"debug-addr":    "server.debug_addr",
	"draft-model":   "engine.draft_model",
	"threads":       "threads",
	"expert-mem":    "experts.memory",
	"jobs":          "jobs.path",
	"kv-disk":       "kv.disk.path",
	"kv-type":       "kv.type",
	"kv-mem":        "kv.memory",
	"log":           "log.level",
	"model-mem":     "loading.memory",
	"models-dir":    "loading.dir",
	"npu-plan":      "hexagon.plan",
	"placement":     "hexagon.placement",
	"speculation":   "engine.speculation",
	"strict":        "server.strict",
	"tls-cert":      "server.tls_cert",
	"tls-key":       "server.tls_key",
}

// flags sets what the command line says.
type flags struct {
	*settings.Settings
	config *Config
}

// read reads the flags that were set; --model and --verifier name the models to load.
func (s *flags) read(set *pflag.FlagSet) {
	defer func() {
		if f := set.Lookup("lora"); f != nil && f.Changed { // of the first model, which may be --model's
			s.readAdapters(f.Value.(pflag.SliceValue).GetSlice())
		}
	}()
	set.Visit(func(f *pflag.Flag) {
		from := "--" + f.Name
		key, ok := configKeys[f.Name]
		list, isList := f.Value.(pflag.SliceValue)
		switch {
		case f.Name == "model" && isList:
			s.readModels(list.GetSlice())
		case f.Name == "verifier" && isList:
			s.readVerifiers(list.GetSlice())
		case !ok:
		case isList:
			s.SetList(key, from, list.GetSlice())
		default:
			s.Set(key, from, f.Value.String())
			if f.Name == "draft-model" {
				s.checkDraft(f.Value.String())
			}
		}
	})
}

// checkDraft reports a mistyped file before anything is loaded.
func (s *flags) checkDraft(name string) {
	if name == "" || name == noDraft || IsEmbedded(name) {
		return
	}
	_, remote, err := ModelNamed(name).Remote()
	if err == nil && !remote {
		err = CheckModelFile(name)
	}
	if err != nil {
		s.Fault("--draft-model", "%w", err)
	}
}

func (s *flags) readVerifiers(args []string) {
	s.config.Verifiers = nil
	s.Replace("verifiers", "--verifier")
	for _, arg := range args {
		if v := (Verifier{Embedded: arg}); v.IsProbe() {
			s.config.Verifiers = append(s.config.Verifiers, v)
			continue
		}
		m, err := modelArgument("--verifier", arg)
		if err != nil {
			s.Refuse(err)
			continue
		}
		s.config.Verifiers = append(s.config.Verifiers, Verifier{Name: m.Name, Path: m.Path, Embedded: m.Embedded})
	}
}

func (s *flags) readModels(args []string) {
	s.config.Models = nil
	s.Replace("models", "--model")
	for _, arg := range args {
		m, err := ModelFlag(arg)
		if err != nil {
			s.Refuse(err)
		}
		s.config.Models = append(s.config.Models, m)
	}
}
