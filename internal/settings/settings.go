// Package settings reads sections of settings from a file, the environment and flags, each overriding the one
// before. A section is any struct whose fields have a yaml tag.
//
//	defaults ──▶ file ──▶ environment ──▶ flags ──▶ Check
//
// Every fault names the key and the place that its value comes from. The package knows no section.
package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/internal/usage"
)

// Settings are sections while their sources are read.
type Settings struct {
	Warnings []string // problems that keep nothing from being used

	into   reflect.Value
	names  Names
	origin map[string]string // key → what set it: "lutra.yaml:12", "LUTRA_THREADS", "--threads"
	file   string            // being read
	faults []error
}

// Names are keys of former versions, which a source may have for one more version, with a warning.
type Names struct {
	Former map[string]string // former names → present ones
	Gone   map[string]string // keys that have no meaning any more → why
}

// Of returns the settings of into, a pointer to a struct of sections with their defaults.
func Of(into any, names Names) *Settings {
	return &Settings{into: reflect.ValueOf(into).Elem(), names: names, origin: map[string]string{}}
}

// ReadFile reads a file. Its error says that there is none to be read; faults within it are kept.
func (s *Settings) ReadFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--config: there is no file %s", path)
	case err != nil:
		return fmt.Errorf("--config: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("--config: %s is not a file", path)
	case info.Size() > maxConfigFile:
		return fmt.Errorf("--config: %s has %d bytes, more than %d", path, info.Size(), maxConfigFile)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		s.ReadYAML(path, text)
	}
	return err
}

// environmentName returns LUTRA_SERVER_ADDR for server.addr. Names are made from keys and
// never parsed, so underscores inside keys are unambiguous.
func environmentName(key string) string {
	return "LUTRA_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// ReadEnvironment sets single values and lists of text, separated by commas. A name
// that is a letter or two away from a setting's is a fault. Other names that begin with
// LUTRA_ belong to other programs; others are names that are read elsewhere.
func (s *Settings) ReadEnvironment(environ []string, others ...string) {
	keys := map[string]string{}
	for _, name := range others {
		keys[name] = ""
	}
	for key := range leaves(s.into, "") {
		keys[environmentName(key)] = key
	}
	names := slices.Sorted(maps.Keys(keys))
	for former := range s.names.Former {
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
				s.Fault(name, "is set by %s already, under another name", s.origin[key])
				continue
			}
			s.Set(key, name, text)
		case usage.Nearest(name, names) != "":
			s.Fault(name, "is not a setting%s", usage.DidYouMean(name, names))
		}
	}
}

// current returns the present name of a key. from is the place where it is set.
func (s *Settings) current(key, from string) string {
	now, former := s.names.Former[key]
	if !former {
		return key
	}
	s.Warnings = append(s.Warnings, fmt.Sprintf("%s: %s is called %s now; the former name will not be accepted for much longer", from, key, now))
	return now
}

// Fault adds a fault of a variable or of a flag; a flag's is a usage error.
func (s *Settings) Fault(from, format string, args ...any) {
	err := fmt.Errorf("%s: %w", from, fmt.Errorf(format, args...))
	if strings.HasPrefix(from, "--") {
		err = usage.Error{Err: err}
	}
	s.faults = append(s.faults, err)
}

// Refuse adds an error that names its place itself.
func (s *Settings) Refuse(err error) { s.faults = append(s.faults, err) }

// Set sets the value of a key from its text in the environment or a flag.
func (s *Settings) Set(key, from, text string) {
	s.origin[key] = from
	dst := leaves(s.into, "")[key]
	if scalar(dst.Type()) {
		if err := setText(dst, text); err != nil {
			s.Fault(from, "%w", err)
		}
		return
	}
	list, ok := dst.Addr().Interface().(*[]string)
	if !ok {
		s.Fault(from, "%s can only be set in the configuration file", key)
		return
	}
	*list = nil
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			*list = append(*list, part)
		}
	}
}

// SetList sets a list of text from a flag.
func (s *Settings) SetList(key, from string, list []string) {
	s.origin[key] = from
	*leaves(s.into, "")[key].Addr().Interface().(*[]string) = list
}

// Replace says that a flag sets a list in place of the file.
func (s *Settings) Replace(list, flag string) {
	for key := range s.origin {
		if strings.HasPrefix(key, list+"[") {
			delete(s.origin, key)
		}
	}
	s.origin[list] = flag
}

// Origin returns what has set a key; empty: nothing.
func (s *Settings) Origin(key string) string { return s.origin[key] }

// Check adds the faults of a check, unless there are others already. Each begins with a key.
func (s *Settings) Check(check func() error) {
	if len(s.faults) == 0 {
		s.faults = s.locate(check())
	}
}

// Err joins all faults.
func (s *Settings) Err() error { return errors.Join(s.faults...) }

// locate adds to each fault, which begins with a key, where the value comes from. The
// name of a flag or a variable replaces the key.
func (s *Settings) locate(err error) (faults []error) {
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

// InSection puts the section before faults that begin with the name of an option.
func InSection(section string, err error) (faults []error) {
	for _, fault := range parts(err) {
		faults = append(faults, fmt.Errorf("%s.%w", section, errtext.Keyed(fault)))
	}
	return faults
}
