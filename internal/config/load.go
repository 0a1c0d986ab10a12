package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/internal/usage"
)

// settings is a configuration while its sources are read, each overriding the one
// before: defaults, file, environment, flags.
type settings struct {
	config Config
	origin map[string]string // key → what set it: "lutra.yaml:12", "LUTRA_THREADS", "--threads"
	file   string            // being read
	faults []error
}

// Load merges defaults, the file (none if path is empty), the environment and the
// flags that were set. Its error joins all faults, each with the place it comes from;
// faults of flags are usage errors.
func Load(path string, environ []string, set *pflag.FlagSet) (Config, error) {
	s := settings{config: Default(), origin: map[string]string{}}
	if path != "" {
		text, err := readConfigFile(path)
		if err != nil {
			return Config{}, err
		}
		s.readYAML(path, text)
	}
	s.readEnvironment(environ)
	if set != nil {
		s.readFlags(set)
	}
	if len(s.faults) == 0 {
		s.faults = append(s.faults, s.locate(s.config.Validate())...)
	}
	if len(s.faults) == 0 && set != nil { // a command will read them
		s.faults = s.locate(s.config.checkModelFiles())
	}
	if err := errors.Join(s.faults...); err != nil {
		return Config{}, err
	}
	return s.config, nil
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

func readConfigFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("--config: there is no file %s", path)
	case err != nil:
		return nil, fmt.Errorf("--config: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("--config: %s is not a file", path)
	case info.Size() > maxConfigFile:
		return nil, fmt.Errorf("--config: %s has %d bytes, more than %d", path, info.Size(), maxConfigFile)
	}
	return os.ReadFile(path)
}

// environmentName returns LUTRA_SERVER_ADDR for server.addr. Names are made from keys and
// never parsed, so underscores inside keys are unambiguous.
func environmentName(key string) string {
	return "LUTRA_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// readEnvironment sets single values and lists of text, separated by commas. A name
// that is a letter or two away from a setting's is a fault; other names that begin with
// LUTRA_ belong to other programs.
func (s *settings) readEnvironment(environ []string) {
	keys := map[string]string{"LUTRA_KERNEL": "", "LUTRA_URL": "", "LUTRA_API_KEY": ""} // read by kernels, and by commands that ask a server
	for key := range leaves(reflect.ValueOf(&s.config).Elem(), "") {
		keys[environmentName(key)] = key
	}
	names := slices.Sorted(maps.Keys(keys))
	for former := range formerKeys {
		keys[environmentName(former)] = former
	}
	for _, e := range environ {
		name, text, _ := strings.Cut(e, "=")
		key, known := keys[name]
		switch {
		case !strings.HasPrefix(name, "LUTRA_") || known && key == "":
		case known:
			key = s.current(key, name)
			if _, twice := keys[s.origin[key]]; twice {
				s.fault(name, "is set by %s already, under another name", s.origin[key])
				continue
			}
			s.setText(key, name, text)
		case usage.Nearest(name, names) != "":
			s.fault(name, "is not a setting%s", usage.DidYouMean(name, names))
		}
	}
}

// fault adds a fault of a variable or of a flag; the latter is a usage error.
func (s *settings) fault(from, format string, args ...any) {
	err := fmt.Errorf("%s: %w", from, fmt.Errorf(format, args...))
	if strings.HasPrefix(from, "--") {
		err = usage.Error{Err: err}
	}
	s.faults = append(s.faults, err)
}

// setText sets the value of a key from its text in the environment or a flag.
func (s *settings) setText(key, from, text string) {
	s.origin[key] = from
	dst := leaves(reflect.ValueOf(&s.config).Elem(), "")[key]
	if scalar(dst.Type()) {
		if err := setText(dst, text); err != nil {
			s.fault(from, "%w", err)
		}
		return
	}
	list, ok := dst.Addr().Interface().(*[]string)
	if !ok {
		s.fault(from, "%s can only be set in the configuration file", key)
		return
	}
	*list = nil
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			*list = append(*list, part)
		}
	}
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

// readFlags sets what the command line says; --model and --verifier name the models
// to load.
func (s *settings) readFlags(set *pflag.FlagSet) {
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
			s.origin[key] = from
			*leaves(reflect.ValueOf(&s.config).Elem(), "")[key].Addr().Interface().(*[]string) = list.GetSlice()
		default:
			s.setText(key, from, f.Value.String())
			if f.Name == "draft-model" {
				s.checkDraft(f.Value.String())
			}
		}
	})
}

// checkDraft reports a mistyped file before anything is loaded.
func (s *settings) checkDraft(name string) {
	if name == "" || name == noDraft || IsEmbedded(name) {
		return
	}
	_, remote, err := ModelNamed(name).Remote()
	if err == nil && !remote {
		err = CheckModelFile(name)
	}
	if err != nil {
		s.fault("--draft-model", "%w", err)
	}
}

// replace says that a flag names what a list of the file did.
func (s *settings) replace(list, flag string) {
	for key := range s.origin {
		if strings.HasPrefix(key, list+"[") {
			delete(s.origin, key)
		}
	}
	s.origin[list] = flag
}

func (s *settings) readVerifiers(args []string) {
	s.config.Verifiers = nil
	s.replace("verifiers", "--verifier")
	for _, arg := range args {
		if v := (Verifier{Embedded: arg}); v.IsProbe() {
			s.config.Verifiers = append(s.config.Verifiers, v)
			continue
		}
		m, err := modelArgument("--verifier", arg)
		if err != nil {
			s.faults = append(s.faults, err)
			continue
		}
		s.config.Verifiers = append(s.config.Verifiers, Verifier{Name: m.Name, Path: m.Path, Embedded: m.Embedded})
	}
}

func (s *settings) readModels(args []string) {
	s.config.Models = nil
	s.replace("models", "--model")
	for _, arg := range args {
		m, err := ModelFlag(arg)
		if err != nil {
			s.faults = append(s.faults, err)
		}
		s.config.Models = append(s.config.Models, m)
	}
}

// locate adds to each fault, which begins with a key, where the value comes from. The
// name of a flag or a variable replaces the key.
func (s *settings) locate(err error) (faults []error) {
	for _, fault := range parts(err) {
		fault = errtext.Keyed(fault)
		key, rest, _ := strings.Cut(errtext.Text(fault), ": ")
		from := ""
		for k := key; k != "" && from == ""; k = parentKey(k) {
			from = s.origin[k]
		}
		switch {
		case strings.HasPrefix(from, "--"):
			faults = append(faults, usage.Error{Err: fmt.Errorf("%s: %s", from, rest)})
		case strings.HasPrefix(from, "LUTRA_") && !strings.Contains(from, ":"): // not a line of a file
			faults = append(faults, fmt.Errorf("%s: %s", from, rest))
		case from != "":
			faults = append(faults, fmt.Errorf("%s: %w", from, fault))
		default:
			faults = append(faults, fault)
		}
	}
	return faults
}

// parentKey of models[0].context is models[0], and then models.
func parentKey(key string) string {
	return key[:max(0, strings.LastIndexAny(key, ".["))]
}

// parts returns the errors that were joined.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range j.Unwrap() {
			all = append(all, parts(e)...)
		}
		return all
	}
	return []error{err}
}

// inSection puts the section before faults that begin with the name of an option.
func inSection(section string, err error) (faults []error) {
	for _, fault := range parts(err) {
		faults = append(faults, fmt.Errorf("%s.%w", section, fault))
	}
	return faults
}
