package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/lutra-lm/lutra/internal/settings"
)

func TestAFaultOfTheFileTellsLineKeyAndWhatIsWanted(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"threads: 1.5", "1: threads: found the number 1.5, want a whole number"},
		{"threads: 2.0", "1: threads: found the number 2.0, want a whole number"},
		{"threads: 1e3", "1: threads: found the number 1e3, want a whole number"},
		{"threads: \"3\"", `1: threads: found the text "3", want a whole number`},
		{"threads: 99999999999999999999", "1: threads: found the number 99999999999999999999, want a whole number"},
		{"threads: yes", `1: threads: found the text "yes", want a whole number`},
		{"threads:", "1: threads: has no value, want a whole number"},
		{"threads: [1]", "1: threads: found a list, want a whole number"},
		{"threads: -1", "1: threads: -1 is outside 0.."},
		{"threads: 1\nthreads: 2", "2: threads: is set in line 1 already"},
		{"kv: {prefix: yes}", `1: kv.prefix: found the text "yes", want true or false`},
		{"kv: {prefix: 1}", "1: kv.prefix: found the number 1, want true or false"},
		{"kv:\n  type: f8", `2: kv.type: "f8" is none of f16, int8`},
		{"kv:\n  memory: lots", `2: kv.memory: "lots" is not a size such as 512MiB or 2GiB`},
		{"kv:\n  memory: 1073741824", `2: kv.memory: found the number 1073741824, want text; put it in quotes: "1073741824"`},
		{"kv: [type]", "1: kv: found a list, want keys with values"},
		{"kv: off", `1: kv: found the text "off", want keys with values`},
		{"server:\n  adr: x", `2: unknown key "server.adr"; did you mean addr?`},
		{"server:\n  colour: x", `2: unknown key "server.colour"`},
		{"sever: {}", `1: unknown key "sever"; did you mean server?`},
		{"server:\n  api_keys: [abc, 123]", `2: server.api_keys[1]: found the number 123, want text; put it in quotes: "123"`},
		{"server:\n  api_keys:\n  - true", `3: server.api_keys[0]: found the truth value true, want text; put it in quotes: "true"`},
		{"server:\n  api_keys:\n  - 2024-01-02", `3: server.api_keys[0]: found the date 2024-01-02, want text; put it in quotes: "2024-01-02"`},
		{"server:\n  api_keys: abc", `2: server.api_keys: found the text "abc", want a list such as [a, b]`},
		{"server:\n  api_keys: [\"\"]", "2: server.api_keys[0]: is empty"},
		{"server:\n  api_keys:", "2: server.api_keys: has no value, want a list such as [a, b]"},
		{"server:\n  presets: {1: bon8}", `2: server.presets: found the number 1 for a key, want text; put it in quotes: "1"`},
		{"server:\n  presets: {a: 8}", `2: server.presets.a: found the number 8, want text; put it in quotes: "8"`},
		{"server:\n  presets: {deep: sc1000}", "2: server.presets.deep: "},
		{"server:\n  default_scaling: think", "2: server.default_scaling: "},
		{"server:\n  write_timeout: 30", "2: server.write_timeout: 30 has no unit; write 30s for seconds"},
		{"server:\n  write_timeout: 1.5", "2: server.write_timeout: 1.5 has no unit; write 1.5s for seconds"},
		{"server:\n  write_timeout: \"30\"", "2: server.write_timeout: 30 has no unit; write 30s for seconds"},
		{"server:\n  write_timeout: soon", `2: server.write_timeout: found "soon", want a duration such as 30s, 5m or 100ms`},
		{"server:\n  write_timeout: 0s", "2: server.write_timeout: 0s is too short"},
		{"server:\n  max_body: 8MiB", `2: server.max_body: found the text "8MiB", want a whole number`},
		{"server:\n  tls_cert: one-of-a-pair", "2: server.tls_cert: set tls_key too, or neither"},
		{"server: [1", "1: did not find expected ',' or ']'"},
		{"engine:\n  step_tokens: 0", "2: engine.step_tokens: 0 is outside 32..8192"},
		{"engine:\n  prefill_slowdown: .nan", `2: engine.prefill_slowdown: found ".nan", want a number`},
		{"engine:\n  prefill_slowdown: 1", "2: engine.prefill_slowdown: 1 is neither 0 nor above 1"},
		{"engine:\n  speculation: 99", `2: engine.speculation: "99" is none of auto, off and the numbers to 15`},
		{"search:\n  n: 0", "2: search.n: 0 is outside 1..4096"},
		{"search:\n  max_steps: 0", "2: search.max_steps: 0 is outside 1..65536"},
		{"log:\n  level: loud", `2: log.level: "loud" is none of trace, debug, info, warn, error`},
		{"models: []", "1: models: name at least one"},
		{"models: {}", "1: models: found keys with values, want a list such as [a, b]"},
		{"models:\n- {}", "2: models[0]: set either path or embedded"},
		{"models:\n- {path: a}\n- {path: a}", `3: models[1]: two models are named "a"`},
		{"models:\n- {path: a, aliases: [b, a]}", `2: models[0].aliases[1]: two models are named "a"`},
		{"models:\n- {embedded: lutra-tiny-m}", `2: models[0].embedded: "lutra-tiny-m" is none of lutra-tiny-l, lutra-tiny-s, lutra-tiny-moe, lutra-tiny-prm; did you mean`},
		{"models:\n- {path: a, packing: i9}", `2: models[0].packing: "i9" is none of auto, i1, i2, stored; did you mean i1?`},
		{"models:\n- {path: a, colour: red}", `2: unknown key "models[0].colour"`},
		{"models:\n- {path: a, name: 7}", `2: models[0].name: found the number 7, want text; put it in quotes: "7"`},
		{"models:\n- {path: a, context: -1}", "2: models[0].context: -1 is outside 0..1073741824"},
		{"verifiers:\n- {}", "2: verifiers[0].path: set either path, embedded or probe"},
		{"verifiers:\n- {path: a, packing: f8}", `2: verifiers[0].packing: "f8" is none of auto, i1, i2, stored`},
		{"verifiers:\n- {path: a, format: b}", `2: verifiers[0].format: "b" is none of`},
		{"x: &a {}\nkv: *a", "1: unknown key"},
		{"kv: &a {}", "1: kv: anchors and aliases are not supported"},
		{"- kv", "1: found a list, want sections such as server:"},
	} {
		path := writeConfig(t, c.text)
		_, err := Load(path, nil, nil)
		if err == nil || !strings.Contains(err.Error(), path+":"+c.want) {
			t.Errorf("%q: error %v, want %s", c.text, err, c.want)
		}
	}
}

func TestWhatAFileMaySay(t *testing.T) {
	long := writeConfig(t, "server:\n  api_keys: ["+strings.Repeat("a, ", 1024)+"a]")
	if _, err := Load(long, nil, nil); err == nil || !strings.Contains(err.Error(), "more than 1024 entries") {
		t.Errorf("a list beyond its bound: error %v", err)
	}
	two := writeConfig(t, "threads: 1\n---\nthreads: 2")
	if _, err := Load(two, nil, nil); err == nil || !strings.Contains(err.Error(), "more than one document") {
		t.Errorf("two documents: error %v", err)
	}
	if _, err := Load(t.TempDir(), nil, nil); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a directory: error %v", err)
	}
	c, err := Load(writeConfig(t, "# nothing but words\n"), nil, nil)
	if want := Default(); err != nil || c.Threads != want.Threads || len(c.Models) != len(want.Models) {
		t.Errorf("an empty file: %+v, %v", c, err)
	}
	c, err = Load(writeConfig(t, "server:\n  # addr: x\nengine: {speculation: 8, prefill_slowdown: 2, step_time: 0s}\n"), nil, nil)
	if err != nil || c.Engine.Speculation != "8" || c.Engine.PrefillSlowdown != 2 || c.Engine.StepTime != 0 {
		t.Errorf("a section without keys, a number of drafts: %+v, %v", c.Engine, err)
	}
}

func TestFaultsOfTheEnvironmentNameTheVariable(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"LUTRA_THREADS=1.5", `LUTRA_THREADS: found "1.5", want a whole number`},
		{"LUTRA_THREADS=", `LUTRA_THREADS: found "", want a whole number`},
		{"LUTRA_THREADS=-1", "LUTRA_THREADS: -1 is outside 0.."},
		{"LUTRA_SERVER_STRICT=maybe", `LUTRA_SERVER_STRICT: found "maybe", want true or false`},
		{"LUTRA_SERVER_WRITE_TIMEOUT=30", "LUTRA_SERVER_WRITE_TIMEOUT: 30 has no unit; write 30s for seconds"},
		{"LUTRA_SERVER_ADR=x:1", "LUTRA_SERVER_ADR: is not a setting; did you mean LUTRA_SERVER_ADDR?"},
		{"LUTRA_KV_TYPE=f8", `LUTRA_KV_TYPE: "f8" is none of f16, int8`},
		{"LUTRA_MODELS=a.gguf", "LUTRA_MODELS: models can only be set in the configuration file"},
	} {
		if _, err := Load("", []string{c.env}, nil); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.env, err, c.want)
		}
	}
	others := []string{"LUTRA_KERNEL=generic", "LUTRA_PORT=tcp://10.0.0.1:8080", "LUTRA_SERVER_SERVICE_HOST=10.0.0.1", "LUTRA_SERVER_PORT=tcp://10.0.0.1:80", "LUTRA=1", "NOTHING"}
	if _, err := Load("", others, nil); err != nil {
		t.Errorf("variables of others: %v", err)
	}
}

func TestEverySettingHasAKey(t *testing.T) {
	var walk func(reflect.Type, string)
	walk = func(typ reflect.Type, where string) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Tag.Get("yaml") == "" && !f.Anonymous {
				t.Errorf("%s.%s has no key; - says that it is no setting", where, f.Name)
			}
			if f.Type.Kind() == reflect.Struct && f.Tag.Get("yaml") != "-" {
				walk(f.Type, where+"."+f.Name)
			}
		}
	}
	walk(reflect.TypeFor[Config](), "Config")
}

// FuzzConfig holds that no file makes the loader panic, and that what it takes
// is taken as written: the configuration written out again loads to the same one.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		"threads: 2\n", "server: {addr: a:1, keep_alive: 3s, api_keys: [a, b]}\nmodels:\n- {path: x, context: 7}\n",
		"engine: {speculation: 8, prefill_slowdown: 1.5}\nsearch: {time: 5m}\n", "engine: {hand_over: 5ms}", "models: [{path: x, sampling: {temperature: 0.5, top_k: 7}}]", "server: {presets: {a: bon8}}", "a: &b [*b]", "? [1]\n: 2", "!!binary x: y", "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first := Default()
		s := settings.Of(&first, formerNames)
		if s.ReadYAML("first", text); s.Err() != nil {
			return
		}
		written, err := yaml.Marshal(plain(reflect.ValueOf(first)))
		if err != nil {
			t.Fatal(err)
		}
		var second Config
		s = settings.Of(&second, formerNames)
		if s.ReadYAML("second", written); s.Err() != nil {
			t.Fatalf("%q was taken, what it means is not: %v\n%s", text, s.Err(), written)
		}
		second.Server.Limits, second.Server.Log = first.Server.Limits, first.Server.Log
		if a, b := plain(reflect.ValueOf(first)), plain(reflect.ValueOf(second)); !reflect.DeepEqual(a, b) {
			t.Errorf("%q means\n%v\nand written out\n%v", text, a, b)
		}
	})
}

// plain is a section as maps, lists and single values, durations written out.
func plain(v reflect.Value) any {
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		return v.Interface().(time.Duration).String()
	case v.Kind() == reflect.Struct:
		m := map[string]any{}
		addressable := reflect.New(v.Type()).Elem()
		addressable.Set(v)
		for _, f := range settings.Fields(addressable) {
			if f.Value.Kind() != reflect.Pointer {
				m[f.Name] = plain(f.Value)
			} else if !f.Value.IsNil() {
				m[f.Name] = plain(f.Value.Elem())
			}
		}
		return m
	case v.Kind() == reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = plain(v.Index(i))
		}
		return list
	case v.Kind() == reflect.Map: // one without entries is like none
		m := map[string]any{}
		for key, value := range v.Seq2() {
			m[key.String()] = plain(value)
		}
		return m
	}
	return v.Interface()
}

func TestWhatIsWrongWithAFileIsSaidInWordsWithItsLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	for text, want := range map[string]string{
		"models:\n\t- embedded: lutra-tiny-s\n":                        "c.yaml:2: a line cannot begin with a tab",
		"models:\n- embedded: lutra-tiny-s\n- path: nowhere/no.gguf\n": "c.yaml:3: models[1].path: there is no file nowhere/no.gguf",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path, nil, pflag.NewFlagSet("", pflag.ContinueOnError)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := Load(path+"x", nil, nil); err == nil || !strings.Contains(err.Error(), "--config: there is no file ") {
		t.Errorf("of a file that is not there: %v", err)
	}
}
