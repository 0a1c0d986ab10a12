package cli

import (
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/usage"
)

// formerFlags are other names of flags: what they were called here, or are in llama.cpp.
var formerFlags = map[string]string{
	"ctx": "context", "ctx-size": "context", "model-draft": "draft-model", "spec-draft-model": "draft-model",
	"draft": "speculation", "draft-n": "speculation", "draft-max": "speculation", "spec-draft-n-max": "speculation",
	"temp": "temperature", "predict": "max-tokens", "n-predict": "max-tokens",
	"ssl-cert-file": "tls-cert", "ssl-key-file": "tls-key", "api-key-file": "api-keys-file",
}

// otherFlags say of flags of llama.cpp what there is here instead, by name and by letters.
var otherFlags = map[string]string{
	"parallel":           "requests are computed side by side, up to engine.sequences of config.yaml",
	"n-gpu-layers":       "the CPU computes all layers",
	"flash-attn":         "attention never stores its scores",
	"cache-type-k":       "--kv-type is of keys and values, as int8/int4",
	"alias":              "--model NAME=FILE names a model",
	"mmproj":             "images are not read",
	"mlock":              "weights stay in memory",
	"no-mmap":            "no file is mapped",
	"jinja":              "the model's chat template is always used",
	"host":               "--addr HOST:PORT is the server's address",
	"port":               "--addr HOST:PORT is the server's address",
	"plain":              "answers are always shown as they are written",
	"hf-repo":            "--model hf:OWNER/REPO:QUANT is a model of the hub",
	"spec-type":          "--speculation auto guesses by lookup, by the model's MTP layer and by --draft-model as far as each pays; off ends that",
	"draft-min":          "--speculation auto guesses as many tokens as pay, and none where none do",
	"hf-repo-draft":      "--draft-model hf:OWNER/REPO:QUANT is a model of the hub that drafts",
	"speculative-config": "--speculation N or auto guesses by lookup, by the model's MTP layer and by --draft-model",
}

func init() {
	for letters, name := range map[string]string{"np": "parallel", "ngl": "n-gpu-layers", "fa": "flash-attn", "a": "alias", "mm": "mmproj", "gpu-layers": "n-gpu-layers", "cache-type-v": "cache-type-k",
		"spec-default": "spec-type", "draft-n-min": "draft-min", "spec-draft-n-min": "draft-min", "draft-p-min": "draft-min", "spec-draft-p-min": "draft-min",
		"spec-draft-hf": "hf-repo-draft", "hfd": "hf-repo-draft", "speculative-model": "speculative-config", "num-speculative-tokens": "speculative-config"} {
		otherFlags[letters] = otherFlags[name]
	}
}

// severalLetters are flags of llama-server that pflag would read as one flag a letter, or as -m and -c
// with a value.
var severalLetters = map[string]string{
	"-hf": "--hf-repo", "-hfr": "--hf-repo", "-md": "--model-draft", "-mm": "--mmproj", "-ctk": "--cache-type-k", "-ctv": "--cache-type-v",
}

// asServed returns a command line in which lutra serve finds llama-server's flags.
func asServed(args []string) []string {
	if len(args) == 0 || args[0] != "serve" {
		return args
	}
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if name, ok := severalLetters[arg]; ok {
			args[i] = name
		}
	}
	return args
}

// currentName returns the name of a flag by a former one.
func currentName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if current, ok := formerFlags[name]; ok {
		name = current
	}
	return pflag.NormalizedName(name)
}

// repoFlag is llama-server's --hf-repo, which names a model of the hub.
type repoFlag struct{ flags *pflag.FlagSet }

func (r repoFlag) String() string { return "" }
func (r repoFlag) Type() string   { return "string" }
func (r repoFlag) Set(s string) error {
	return r.flags.Set("model", "hf:"+strings.TrimPrefix(s, "hf:"))
}

// llamaServerFlags define llama-server's flags that serve has under other names.
func llamaServerFlags(f *pflag.FlagSet) {
	f.Var(repoFlag{f}, "hf-repo", "model of the hub, as --model hf:OWNER/REPO[:QUANT]")
	f.String("host", "", "host to listen on, as of --addr")
	f.Int("port", 0, "port to listen on, as of --addr")
	f.String("cache-type-k", "", "format of cached keys, as of --kv-type")
	f.String("cache-type-v", "", "format of cached values, as of --kv-type")
	for _, name := range []string{"hf-repo", "host", "port", "cache-type-k", "cache-type-v"} {
		f.Lookup(name).Hidden = true
	}
}

// listenOn replaces host and port of the configured address by --host and --port.
func (m *ModelFlags) listenOn(f *pflag.FlagSet) error {
	if !f.Changed("host") && !f.Changed("port") {
		return nil
	}
	if f.Changed("addr") {
		return usage.Errorf("--addr has the host and the port: leave out --host and --port")
	}
	cfg, err := m.load(f)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(cfg.Server.Addr)
	if err != nil {
		return err
	}
	for flag, part := range map[string]*string{"host": &host, "port": &port} {
		if f.Changed(flag) {
			*part = f.Lookup(flag).Value.String()
		}
	}
	return f.Set("addr", net.JoinHostPort(strings.Trim(host, "[]"), port))
}

// cacheTypes are llama-server's names of formats, and what they are here.
var cacheTypes = map[string]string{"f16": "f16", "q8_0": "int8", "q4_0": "int4"}

// cacheAs sets --kv-type by --cache-type-k and --cache-type-v.
func (m *ModelFlags) cacheAs(f *pflag.FlagSet) error {
	flags := []string{"cache-type-k", "cache-type-v"}
	if !slices.ContainsFunc(flags, f.Changed) {
		return nil
	}
	if f.Changed("kv-type") {
		return usage.Errorf("--kv-type has the formats of keys and values: leave out --cache-type-k and --cache-type-v")
	}
	cfg, err := m.load(f)
	if err != nil {
		return err
	}
	keys, values, pair := strings.Cut(cfg.KV.Type, "/")
	if !pair {
		values = keys
	}
	for i, part := range []*string{&keys, &values} {
		if !f.Changed(flags[i]) {
			continue
		}
		name := f.Lookup(flags[i]).Value.String()
		known := slices.Sorted(maps.Keys(cacheTypes))
		if *part = cacheTypes[name]; *part == "" {
			return usage.Errorf("--%s: %q is none of %s%s", flags[i], usage.Brief(name), strings.Join(known, ", "), usage.DidYouMean(name, known))
		}
	}
	if keys == values {
		return f.Set("kv-type", keys)
	}
	return f.Set("kv-type", keys+"/"+values)
}
