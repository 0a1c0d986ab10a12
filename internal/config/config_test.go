package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/settings"
	"github.com/lutra-lm/lutra/models"
)

const shipped = "../../config.yaml"

func TestShippedConfigNamesEveryKeyWithItsDefault(t *testing.T) {
	text, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	var written Config
	s := settings.Of(&written, formerNames)
	if s.ReadYAML(shipped, text); s.Err() != nil {
		t.Fatal(s.Err())
	}
	for key := range settings.Keys(&written) {
		if s.Origin(key) == "" {
			t.Errorf("config.yaml lacks %s", key)
		}
	}
	got, err := Load(shipped, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	got.Server.Log = want.Server.Log // set by the program, not by the file
	for _, list := range []*[]string{&got.Server.APIKeys, &got.Server.CORSOrigins, &got.Server.AllowedHosts, &got.Search.Workers} {
		*list = nilIfEmpty(*list)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("config.yaml gives\n%+v\nthe defaults are\n%+v", got, want)
	}
}

// nilIfEmpty takes an empty list of the file for an absent one.
func nilIfEmpty(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

func TestFlagsBeatEnvironmentBeatsFile(t *testing.T) {
	path := writeConfig(t, "threads: 3\nserver:\n  addr: 127.0.0.1:1\n  max_choices: 5\nkv:\n  type: int8\n")
	env := []string{"LUTRA_SERVER_ADDR=127.0.0.1:2", "LUTRA_SERVER_MAX_CHOICES=6", "LUTRA_SERVER_KEEP_ALIVE=3s", "LUTRA_SERVER_API_KEYS=a,b", "LUTRA_KERNEL=generic"}
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	set.String("addr", "", "")
	set.String("kv-type", "", "")
	if err := set.Parse([]string{"--addr", "127.0.0.1:3"}); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path, env, set)
	if err != nil {
		t.Fatal(err)
	}
	if c.Server.Addr != "127.0.0.1:3" || c.Server.MaxChoices != 6 || c.Threads != 3 || c.KV.Type != "int8" ||
		c.Server.KeepAlive.Seconds() != 3 || !slices.Equal(c.Server.APIKeys, []string{"a", "b"}) {
		t.Errorf("Load() = %+v", c)
	}
}

func TestPresetsAndLimitsOfSearchesComeFromTheFile(t *testing.T) {
	path := writeConfig(t, "search: {n: 8}\nserver:\n  presets: {deep: \"dvts8x4;budget.tokens=4000\"}\n  default_scaling: sc4\nverifiers: []\n")
	c, err := Load(path, []string{"LUTRA_SEARCH_TIME=30s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Server.Presets) != 1 || c.Server.Presets["deep"] == "" || c.Server.DefaultScaling != "sc4" || c.Server.Limits != c.Search.Limits ||
		c.Search.N != 8 || c.Search.Time.Seconds() != 30 || len(c.Verifiers) != 0 {
		t.Errorf("Load() = %+v", c)
	}
}

func TestNumbersOutOfRangeAreRefused(t *testing.T) {
	for key, values := range map[string][]string{
		"threads":                    {"1000000", "-2"},
		"kv.memory":                  {"900TiB", "1KiB"},
		"experts.memory":             {"900TiB", "1KiB", "most"},
		"kv.block":                   {"0", "1025"},
		"kv.events":                  {"'*:5556'", "tcp://*", "ipc:///tmp/x", "tcp://*:0x1"},
		"kv.replay":                  {"tcp://*:5558"},
		"engine.queue":               {"0", "65537"},
		"engine.sequences":           {"0", "65537"},
		"engine.step_tokens":         {"31", "100", "8224"},
		"engine.step_rows":           {"3", "4097"},
		"engine.step_time":           {"-1s", "61s"},
		"engine.prefill_slowdown":    {"0.5", "1001", ".nan"},
		"engine.background_slowdown": {"1", "1001", ".inf"},
		"engine.speculation":         {"16", "-1", "much"},
		"engine.unread":              {"0", "1048577"},
		"engine.flush_interval":      {"-1ms", "2s"},
		"search.n":                   {"-1", "4097"},
		"search.max_steps":           {"0", "65537"},
		"search.tokens":              {"0", "1073741825"},
		"search.time":                {"0s", "25h"},
		"search.profiles":            {"[config_test.go]", "[no/such.json]"},
		"server.max_body":            {"0", "1073741825"},
		"server.max_requests":        {"0", "65537"},
		"server.max_choices":         {"0", "4097"},
		"server.max_connections":     {"-1", "1048577"},
		"server.max_memory":          {"0", "1125899906842625"},
		"server.requests_per_minute": {"-1", "1073741825"},
		"server.tokens_per_minute":   {"-1", "1099511627777"},
		"server.header_timeout":      {"0s", "200h"},
		"server.request_timeout":     {"-1s", "200h"},
		"server.drain_timeout":       {"-1s", "200h"},
	} {
		section, name, nested := strings.Cut(key, ".")
		for _, v := range values {
			text := section + ": " + v
			if nested {
				text = section + ":\n  " + name + ": " + v
			}
			if _, err := Load(writeConfig(t, text), nil, nil); err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: %s gives %v, want an error that names the key", key, v, err)
			}
		}
	}
	for _, m := range []string{"models:\n  - {path: a, context: 2000000000}", "verifiers:\n  - {path: a, context: -1}"} {
		if _, err := Load(writeConfig(t, m), nil, nil); err == nil || !strings.Contains(err.Error(), "context") {
			t.Errorf("%s: error %v, want one that names the context", m, err)
		}
	}
}

func TestAllCachesTogetherFitTheMachine(t *testing.T) {
	c := Default()
	c.KV.Memory = "1GiB"
	n := int64(c.caches())
	if err := c.checkMemory(n << 30); err != nil {
		t.Errorf("%d caches of 1 GiB in %d GiB: %v", n, n, err)
	}
	if err := c.checkMemory(n<<30 - 1); err == nil || !strings.Contains(err.Error(), "more than this machine's memory") {
		t.Errorf("%d caches of 1 GiB in less: %v", n, err)
	}
	if err := c.checkMemory(0); err != nil {
		t.Errorf("on a machine of unknown memory: %v", err)
	}
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAVerifierIsReadAsConfiguredElseAsItsFileSays(t *testing.T) {
	qwen := models.Verifier{Format: "qwen-prm"}
	for _, c := range []struct {
		v         Verifier
		file      models.Verifier
		name, sep string
	}{
		{Verifier{}, models.Verifier{}, "lutra", "\n"},
		{Verifier{}, qwen, "qwen-prm", "\n\n"},
		{Verifier{Format: "skywork-prm"}, qwen, "skywork-prm", "\n"},
		{Verifier{Separator: ";"}, models.Verifier{Format: "trl-prm", Separator: "\n"}, "trl-prm", ";"},
		{Verifier{}, models.Verifier{Format: "trl-prm", Separator: "\n"}, "trl-prm", "\n"},
	} {
		f, err := c.v.FormatFor(c.file)
		if err != nil || f.Name != c.name || f.Separator != c.sep {
			t.Errorf("%+v with a file that says %+v is read as %q %q, %v", c.v, c.file, f.Name, f.Separator, err)
		}
	}
	if _, err := (Verifier{}).FormatFor(models.Verifier{Format: "unheard-of"}); err == nil || !strings.Contains(err.Error(), "unheard-of") {
		t.Errorf("a file of an unknown format: %v", err)
	}
}

func TestWhatPublishingNeedsIsChecked(t *testing.T) {
	t.Setenv("POD_IP", "10.1.2.3")
	cfg, err := Load(writeConfig(t, "kv: {events: 'tcp://*:5556', replay: 'tcp://*:5558'}"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	opt, err := cfg.Publishing()
	if err != nil || opt.Pod != "10.1.2.3" || !opt.Events.Binds || opt.Events.Addr != ":5556" || opt.Replay.Addr != ":5558" {
		t.Errorf("Publishing() = %+v, %v", opt, err)
	}
	for text, key := range map[string]string{
		"kv: {events: 'tcp://*:5556', prefix: false}":                                   "kv.events",
		"kv: {events: 'tcp://*:5556', replay: '*:5558'}":                                "kv.replay",
		"kv: {events: 'tcp://*:5556', pod: 'a@b'}":                                      "kv.pod",
		"kv: {events: 'tcp://*:5556'}\nmodels: [{name: 'a@b', embedded: lutra-tiny-s}]": "kv.events",
	} {
		if _, err := Load(writeConfig(t, text), nil, nil); err == nil || !strings.Contains(err.Error(), key+":") {
			t.Errorf("%s gives %v, want an error of %s", text, err, key)
		}
	}
	if opt, err := new(Config).Publishing(); opt != nil || err != nil {
		t.Errorf("without kv.events: %+v, %v", opt, err)
	}
}
