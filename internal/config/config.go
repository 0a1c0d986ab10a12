// Package config composes the sections of config.yaml, each with the options of the package that it is for,
// and reads them from file, LUTRA_* variables and flags (settings.Settings).
//
//	Default ──▶ settings.Settings ──▶ Validate ──▶ Config
package config

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/kvevents"
	"github.com/lutra-lm/lutra/internal/memory"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/settings"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/internal/workers"
	"github.com/lutra-lm/lutra/models/kv/offload"
	"github.com/lutra-lm/lutra/models/weights"
	"github.com/lutra-lm/lutra/server"
	"github.com/lutra-lm/lutra/server/jobs"
	"github.com/lutra-lm/lutra/tts/judge"
	"github.com/lutra-lm/lutra/tts/profile"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/verify"
)

// Config is config.yaml: one section a package's Options, and what the
// composition root itself decides. Precedence: flag > LUTRA_* environment >
// file > default.
type Config struct {
	Threads     int            `yaml:"threads"`      // compute threads; 0: one a physical core
	KernelTimes bool           `yaml:"kernel_times"` // count the time of each kind of kernel for /metrics
	Backend     string         `yaml:"backend"`      // where matrices and attention are computed, of models that name no other
	Hexagon     Hexagon        `yaml:"hexagon"`
	Models      []Model        `yaml:"models"`
	Verifiers   []Verifier     `yaml:"verifiers"`
	Loading     Loading        `yaml:"loading"`
	KV          KV             `yaml:"kv"`
	Experts     Experts        `yaml:"experts"`
	Engine      Engine         `yaml:"engine"`
	Formats     Formats        `yaml:"formats"`
	Search      Search         `yaml:"search"`
	Server      server.Options `yaml:"server"`
	Jobs        jobs.Options   `yaml:"jobs"`
	Log         Log            `yaml:"log"`

	Partial  bool     `yaml:"-"` // there are further models, which are not loaded at first
	warnings []string `yaml:"-"` // for the log; not settings
}

// Engine configures all engines.
type Engine struct {
	batcher.Options // its settings are the section's too

	// DraftModel drafts for all models but itself: a GGUF file of the same
	// vocabulary, or an embedded model's name; empty: none.
	DraftModel string `yaml:"draft_model"`
}

// Search bounds searches, and says who works for them.
type Search struct {
	scaling.Limits
	workers.Options

	judge.Services
	profile.Sources
}

// KV sizes the KV cache of each model.
type KV struct {
	Type   string `yaml:"type"`   // f16, int8 or int4, or two of them as KEYS/VALUES
	Memory string `yaml:"memory"` // bytes with a unit ("2GiB"); "auto": a quarter of the free memory, at most what the batch can use
	Block  int    `yaml:"block"`  // tokens a block
	Prefix bool   `yaml:"prefix"` // reuse cached blocks of equal prefixes

	Disk offload.Settings `yaml:"disk"`

	kvevents.Settings
}

// Experts bounds what the experts of each mixture take.
type Experts struct {
	Memory string `yaml:"memory"` // bytes with a unit ("12GiB"); "auto": most of the memory that is free when the model loads
}

// Formats bounds the grammars, patterns, schemas and tools that answers are held to.
type Formats struct {
	Memory  string `yaml:"memory"`  // bytes of all, with a unit ("256MiB"): those in use, and those kept for later
	Largest string `yaml:"largest"` // bytes of one
}

// Log says what is logged to standard error.
type Log struct {
	Level  string `yaml:"level"`  // trace, debug, info, warn, error
	Format string `yaml:"format"` // auto (console on a terminal, else JSON), console, json
}

// The words that settings and flags take.
var (
	kvTypes   = []string{"f16", "int8", "int4", "f16/int8", "f16/int4", "int8/f16", "int8/int4", "int4/f16", "int4/int8"}
	logLevels = []string{"trace", "debug", "info", "warn", "error"}
)

// KVTypes returns the formats of KV caches, by their names in the configuration: of keys and values, or of both apart.
func KVTypes() []string { return slices.Clone(kvTypes) }

// LogLevels returns the levels of logs, from the most to the least that is logged.
func LogLevels() []string { return slices.Clone(logLevels) }

// Default serves the embedded models.
func Default() Config {
	return Config{
		Backend:   CPU,
		Hexagon:   DefaultHexagon(),
		Models:    DefaultModels(),
		Verifiers: defaultVerifiers(),
		Loading:   Loading{Cache: true, Memory: "auto", KeepAlive: forever, Queue: 256},
		KV:        KV{Type: "f16", Memory: "auto", Block: 32, Prefix: true, Disk: offload.DefaultSettings()},
		Experts:   Experts{Memory: "auto"},
		Engine:    Engine{Options: batcher.DefaultOptions()},
		Formats:   Formats{Memory: "256MiB", Largest: "64MiB"},
		Search: Search{Limits: scaling.DefaultLimits(), Options: workers.DefaultOptions(),
			Services: judge.Services{Webhooks: []verify.WebhookOptions{}, Judges: []judge.Options{}}, Sources: profile.Sources{Profiles: []string{}, Alternates: []string{}}},
		Server: server.DefaultOptions(),
		Jobs:   jobs.DefaultOptions(),
		Log:    Log{Level: "info", Format: "auto"},
	}
}

// faults gathers what is wrong, each with its key and a colon first.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

// in adds the faults of a section.
func (f *faults) in(section string, err error) { *f = append(*f, settings.InSection(section, err)...) }

// words refuses a value that is none of words.
func (f *faults) words(key, v string, words ...string) {
	if !slices.Contains(words, v) {
		f.add("%s: %q is none of %s%s", key, usage.Brief(v), strings.Join(words, ", "), usage.DidYouMean(v, words))
	}
}

// Validate joins all faults. Each begins with its key and a colon.
func (c *Config) Validate() error {
	var f faults
	if err := CheckThreads(c.Threads); err != nil {
		f.add("%w", err)
	}
	c.checkModels(&f)
	for i, v := range c.Verifiers {
		f.in(fmt.Sprintf("verifiers[%d]", i), v.validate())
	}
	for i, m := range c.Models {
		if _, err := m.Stays(); err != nil {
			f.add("models[%d].keep_alive: %w", i, err)
		}
	}
	f.in("loading", errors.Join(c.Loading.validate()...))
	c.checkBackends(&f)
	f.words("kv.type", c.KV.Type, kvTypes...)
	if err := c.checkMemory(memory.Physical()); err != nil {
		f.add("kv.memory: %w", err)
	}
	if n, err := c.Experts.Bytes(); err != nil {
		f.add("experts.memory: %w", err)
	} else if most := memory.Physical(); most > 0 && n > most {
		f.add("experts.memory: %s is more than this machine's memory of %s", output.Bytes(n), output.Bytes(most))
	}
	_, err := c.Formats.Options()
	f.in("formats", err)
	if c.KV.Block < 1 || c.KV.Block > 1024 {
		f.add("kv.block: %d is outside 1..1024", c.KV.Block)
	}
	_, err = c.Publishing()
	f.in("kv", err)
	f.in("kv.disk", c.KV.Disk.Validate(c.KV.Prefix))
	f.words("log.level", c.Log.Level, logLevels...)
	f.words("log.format", c.Log.Format, "auto", "console", "json")
	f.in("engine", c.Engine.Validate())
	f.in("search", c.Search.Options.Validate())
	if err := c.Search.Limits.Validate(); err != nil {
		f.in("search", err)
		return errors.Join(f...) // the server checks its plans against these limits
	}
	f.in("search", c.Search.Services.Validate(c.verifierNames()...))
	f.in("jobs", c.Jobs.Validate())
	c.Server.Jobs = c.Jobs
	c.Server.Limits, c.Server.Scorers, c.Server.Alternates = c.Search.Limits, c.Search.Scorers(), append([]string(nil), c.Search.Alternates...)
	c.Server.Profiles, err = c.Search.Sources.Read()
	f.in("search", err)
	return errors.Join(append(f, c.Server.Validate())...)
}

// checkModels adds the faults of the models.
func (c *Config) checkModels(f *faults) {
	if len(c.Models) == 0 {
		f.add("models: name at least one")
	}
	names := map[string]bool{}
	name := func(key, name string) {
		if names[name] {
			f.add("%s: two models are named %q; give one another name", key, usage.Brief(name))
		}
		names[name] = true
	}
	for i, m := range c.Models {
		key := fmt.Sprintf("models[%d]", i)
		if (m.Path == "") == (m.Embedded == "") {
			f.add("%s: set either path or embedded", key)
			continue
		}
		m.check(key, f)
		name(key, m.APIName())
		for j, a := range m.Aliases {
			name(fmt.Sprintf("%s.aliases[%d]", key, j), a)
		}
		for j, a := range m.Adapters {
			name(fmt.Sprintf("%s.adapters[%d]", key, j), a.APIName())
		}
		f.in(key, errors.Join(m.validateAdapters()...))
	}
}

// check adds the faults of a model, whatever the others are.
func (m Model) check(key string, f *faults) {
	if _, _, err := m.Remote(); err != nil {
		f.add("%s.path: %w", key, err)
	}
	if m.Embedded != "" && !IsEmbedded(m.Embedded) {
		f.words(key+".embedded", m.Embedded, embeddedNames()...)
	}
	if m.Packing != "" {
		f.words(key+".packing", m.Packing, weights.Packings()...)
	}
	if m.Context < 0 || m.Context > mostContext {
		f.add("%s.context: %d is outside 0..%d", key, m.Context, mostContext)
	}
	f.in(key+".sampling", m.Sampling.Validate())
}

// verifierNames returns the names of the verifiers that are loaded.
func (c *Config) verifierNames() (names []string) {
	for _, v := range c.Verifiers {
		names = append(names, v.Model().APIName())
	}
	return names
}

// Publishing says where the events of the models' caches go; nil: nowhere. The error begins
// with the name of the setting at fault, of the section kv.
func (c *Config) Publishing() (*kvevents.Options, error) {
	var names []string
	for _, m := range c.Models {
		names = append(names, m.APIName())
	}
	return c.KV.Settings.Options(c.KV.Prefix, names)
}

// checkPacking checks the name of a packing; empty means auto.
func checkPacking(name string) error {
	if name != "" && !slices.Contains(weights.Packings(), name) {
		return fmt.Errorf("packing: %q is none of %s", name, strings.Join(weights.Packings(), ", "))
	}
	return nil
}

// mostContext is the longest sequence that a model can have.
const mostContext = 1 << 30

// mostThreads returns the largest number of compute threads that can be asked for. More
// threads than processors never help, but a configuration may come from a larger
// machine.
func mostThreads() int { return max(64, 4*runtime.NumCPU()) }

// CheckThreads checks a number of threads.
func CheckThreads(n int) error {
	if n < 0 || n > mostThreads() {
		return fmt.Errorf("threads: %d is outside 0..%d on this machine; 0 means one a physical core", n, mostThreads())
	}
	return nil
}
