package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/server"
	"github.com/lutra-lm/lutra/tts"
)

// Config is config.yaml: one section a package's Options, and what the
// composition root itself decides. Precedence: flag > LUTRA_* environment >
// file > default.
type Config struct {
	Threads     int              `koanf:"threads"`      // compute threads; 0: one a physical core
	KernelTimes bool             `koanf:"kernel_times"` // count the time of each kind of kernel for /metrics
	Models      []ModelConfig    `koanf:"models"`
	Verifiers   []VerifierConfig `koanf:"verifiers"`
	KV          KVConfig         `koanf:"kv"`
	Engine      EngineConfig     `koanf:"engine"`
	Search      tts.Limits       `koanf:"search"`
	Server      server.Options   `koanf:"server"`
	Log         LogConfig        `koanf:"log"`
}

// ModelConfig names one model to serve. Exactly one of Path and Embedded is set.
type ModelConfig struct {
	Name     string   `koanf:"name"`     // API name; empty: the file's stem or the embedded name
	Path     string   `koanf:"path"`     // GGUF file
	Embedded string   `koanf:"embedded"` // a model inside the binary
	Aliases  []string `koanf:"aliases"`  // further API names
	Packing  string   `koanf:"packing"`  // ternary weights: auto, i1 (1.6 bit) or i2 (2 bit)
	Context  int      `koanf:"context"`  // longest sequence in tokens; 0: the model's own
	Draft    string   `koanf:"draft"`    // as Engine.DraftModel, for this model; "none": none
}

// EngineConfig is what all engines have.
type EngineConfig struct {
	batcher.Options `koanf:",squash,flatten"` // the words of the decoder and of the provider of defaults

	// DraftModel drafts for the models, itself excepted: a GGUF file of their
	// vocabulary or an embedded model's name; empty: none does.
	DraftModel string `koanf:"draft_model"`
}

// KVConfig sizes the KV cache of each model.
type KVConfig struct {
	Type   string `koanf:"type"`   // f16 or int8
	Memory string `koanf:"memory"` // bytes with a unit ("2GiB"); "auto": a quarter of the free memory, at most what the batch can use
	Block  int    `koanf:"block"`  // tokens a block
	Prefix bool   `koanf:"prefix"` // begin sequences with the blocks of equal prefixes that are still there
}

// LogConfig says what is logged to standard error.
type LogConfig struct {
	Level  string `koanf:"level"`  // trace, debug, info, warn, error
	Format string `koanf:"format"` // auto (console on a terminal, else JSON), console, json
}

// DefaultConfig serves the embedded models.
func DefaultConfig() Config {
	return Config{
		Models:    defaultModels(),
		Verifiers: defaultVerifiers(),
		KV:        KVConfig{Type: "f16", Memory: "auto", Block: 32, Prefix: true},
		Engine:    EngineConfig{Options: batcher.DefaultOptions()},
		Search:    tts.DefaultLimits(),
		Server:    server.DefaultOptions(),
		Log:       LogConfig{Level: "info", Format: "auto"},
	}
}

// Validate joins all faults, each naming its key.
func (c *Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Threads < 0 {
		fault("threads: %d is negative", c.Threads)
	}
	if len(c.Models) == 0 {
		fault("models: name at least one")
	}
	for i, m := range c.Models {
		if (m.Path == "") == (m.Embedded == "") {
			fault("models[%d]: set either path or embedded", i)
		}
		if !slices.Contains([]string{"", "auto", "i1", "i2"}, m.Packing) {
			fault("models[%d].packing: %q is none of auto, i1, i2", i, m.Packing)
		}
		if m.Context < 0 {
			fault("models[%d].context: %d is negative", i, m.Context)
		}
	}
	for i, v := range c.Verifiers {
		if err := v.validate(); err != nil {
			fault("verifiers[%d].%w", i, err)
		}
	}
	if !slices.Contains([]string{"f16", "int8"}, c.KV.Type) {
		fault("kv.type: %q is neither f16 nor int8", c.KV.Type)
	}
	if _, err := c.KV.bytes(); err != nil {
		fault("kv.memory: %w", err)
	}
	if c.KV.Block < 1 || c.KV.Block > 1024 {
		fault("kv.block: %d is outside 1..1024", c.KV.Block)
	}
	if _, err := c.Log.level(); err != nil {
		fault("log.level: %w", err)
	}
	if !slices.Contains([]string{"auto", "console", "json"}, c.Log.Format) {
		fault("log.format: %q is none of auto, console, json", c.Log.Format)
	}
	if err := c.Search.Validate(); err != nil {
		return errors.Join(append(errs, err)...) // the server's searches are held against it
	}
	c.Server.Limits = c.Search
	return errors.Join(append(errs, c.Engine.Validate(), c.Server.Validate())...)
}

// loadConfig merges defaults, the file (none when path is empty), the
// environment and the flags that were set. flags maps a flag's name to its key.
func loadConfig(path string, environ []string, set *pflag.FlagSet, flags map[string]string) (Config, error) {
	k := koanf.New(".")
	if err := k.Load(structs.Provider(DefaultConfig(), "koanf"), nil); err != nil {
		return Config{}, err
	}
	known := k.Keys()
	if path != "" {
		from := koanf.New(".")
		if err := from.Load(file.Provider(path), yaml.Parser()); err != nil {
			return Config{}, fmt.Errorf("config %s: %w", path, err)
		}
		if err := refuseUnknown(from.Keys(), known); err != nil {
			return Config{}, fmt.Errorf("config %s: %w", path, err)
		}
		if err := k.Merge(from); err != nil {
			return Config{}, fmt.Errorf("config %s: %w", path, err)
		}
	}
	if err := k.Load(confmap.Provider(fromEnvironment(environ, known), "."), nil); err != nil {
		return Config{}, fmt.Errorf("environment: %w", err)
	}
	if err := k.Load(confmap.Provider(fromFlags(set, flags), "."), nil); err != nil {
		return Config{}, fmt.Errorf("flags: %w", err)
	}
	var c Config
	err := k.UnmarshalWithConf("", &c, koanf.UnmarshalConf{Tag: "koanf", DecoderConfig: &mapstructure.DecoderConfig{
		Result: &c, TagName: "koanf", ErrorUnused: true, WeaklyTypedInput: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			mapstructure.StringToTimeDurationHookFunc(), mapstructure.StringToSliceHookFunc(",")),
	}})
	if err != nil {
		return Config{}, fmt.Errorf("config: %w", err)
	}
	if err := c.Validate(); err != nil {
		return Config{}, fmt.Errorf("config: %w", err)
	}
	return c, nil
}

// presetKeys are those whose names are up to the file.
const presetKeys = "server.presets."

func refuseUnknown(keys, known []string) error {
	var errs []error
	for _, key := range keys {
		if !slices.Contains(known, key) && !strings.HasPrefix(key, presetKeys) {
			errs = append(errs, fmt.Errorf("unknown key %q", key))
		}
	}
	return errors.Join(errs...)
}

// environmentName is LUTRA_SERVER_ADDR for server.addr. Going from known keys
// to names, never back, keeps underscores inside keys unambiguous.
func environmentName(key string) string {
	return "LUTRA_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func fromEnvironment(environ, known []string) map[string]any {
	values := map[string]any{}
	for _, key := range known {
		if slices.Contains([]string{"models", "verifiers", "server.presets"}, key) {
			continue // lists and maps: file and flags only
		}
		name := environmentName(key) + "="
		for _, e := range environ {
			if strings.HasPrefix(e, name) {
				values[key] = strings.TrimPrefix(e, name)
			}
		}
	}
	return values
}

func fromFlags(set *pflag.FlagSet, flags map[string]string) map[string]any {
	values := map[string]any{}
	if set == nil {
		return values
	}
	set.Visit(func(f *pflag.Flag) {
		if key, ok := flags[f.Name]; ok {
			if list, ok := f.Value.(pflag.SliceValue); ok {
				values[key] = list.GetSlice()
				return
			}
			values[key] = f.Value.String()
		}
	})
	return values
}

// modelFlag reads --model [NAME=]FILE; an embedded model's name is one too.
func modelFlag(arg string) (ModelConfig, error) {
	name, path, ok := strings.Cut(arg, "=")
	if !ok {
		name, path = "", arg
	}
	if isEmbedded(path) {
		return ModelConfig{Name: name, Embedded: path}, nil
	}
	if _, err := os.Stat(path); err != nil {
		return ModelConfig{}, fmt.Errorf("--model: %w (embedded models: %s)", err, strings.Join(embeddedNames(), ", "))
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
