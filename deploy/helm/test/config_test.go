package test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/config"
)

// load reads the configuration that the server's container finds, as lutra does.
func (r *release) load(t *testing.T) (config.Config, error) {
	t.Helper()
	root := t.TempDir()
	pod, server := r.pod(t), r.server(t)
	r.mount(t, root, &pod.Spec, server, own(t))
	i := slices.Index(server.Args, "--config")
	if server.Args[0] != "serve" || i < 0 {
		t.Fatalf("the server's arguments are %q", server.Args)
	}
	file := filepath.Join(root, server.Args[i+1])
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	here := strings.ReplaceAll(string(text), "/etc/lutra/", filepath.Join(root, "/etc/lutra")+"/")
	if err := os.WriteFile(file, []byte(here), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"HF_HOME=/models"}
	for _, e := range server.Env {
		environ = append(environ, e.Name+"="+e.Value)
	}
	return config.Load(file, environ, nil)
}

func TestLutraReadsEveryConfigurationThatTheChartWrites(t *testing.T) {
	for _, s := range switches {
		t.Run(s.name, func(t *testing.T) {
			r := render(t, s.values)
			if _, err := r.load(t); err != nil {
				t.Errorf("%v\n%s", err, r.config(t))
			}
		})
	}
}

func TestValuesReachTheConfiguration(t *testing.T) {
	cfg, err := render(t, "port: 9000\nrequestTimeoutSeconds: 120\ndrain: {lameDuckSeconds: 3}\napiKeys: {keys: ['alice: a-key-of-some-length']}\nkvEvents: {enabled: true, port: 7000, replayPort: 7001}\n"+
		"models: [{path: 'hf:Qwen/Qwen3-4B-GGUF', name: qwen, context: 8192, metadata: {general.name: '12'}}]\n"+
		"config: {server: {max_body: 16777216, max_memory: 1073741824}, engine: {prefill_slowdown: 1.25}, search: {n: 8}}").load(t)
	if err != nil {
		t.Fatal(err)
	}
	s := cfg.Server
	for what, is := range map[string]bool{
		"port":            s.Addr == ":9000",
		"request timeout": s.RequestTimeout == 2*time.Minute,
		"drain timeout":   s.DrainTimeout == 2*time.Minute && s.LameDuck == 3*time.Second,
		"keys":            s.NeedsKey(),
		"events":          cfg.KV.Events == "tcp://*:7000" && cfg.KV.Replay == "tcp://*:7001",
		"model":           len(cfg.Models) == 1 && cfg.Models[0].Name == "qwen" && cfg.Models[0].Context == 8192 && cfg.Models[0].Metadata["general.name"] == "12",
		"search.n":        cfg.Search.N == 8, // which YAML 1.1 takes for false
		"large numbers":   s.MaxBody == 16<<20 && s.MaxMemory == 1<<30,
		"fractions":       cfg.Engine.PrefillSlowdown == 1.25,
	} {
		if !is {
			t.Errorf("%s: the configuration is %+v", what, cfg)
		}
	}
	if cfg, err = render(t, "").load(t); err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Server.Addr, want.Server.DrainTimeout = ":8080", want.Server.RequestTimeout
	if !reflect.DeepEqual(cfg.Models, want.Models) || cfg.KV != want.KV || cfg.Server.Addr != want.Server.Addr || cfg.Server.DrainTimeout != want.Server.DrainTimeout ||
		cfg.Server.RequestTimeout != want.Server.RequestTimeout || cfg.Server.LameDuck != want.Server.LameDuck {
		t.Errorf("default values give %+v, want %+v", cfg, want)
	}
}

func TestSearchWorkersAreThePodsOrThoseNamed(t *testing.T) {
	for values, want := range map[string]string{
		"":                               "",
		"searchWorkers: {enabled: true}": "search:\n  workers:\n  - dns+http://r-lutra-pods.apps.svc:8080\n",
		"searchWorkers: {enabled: true, addresses: ['http://10.0.0.7:8080']}":                               "search:\n  workers:\n  - http://10.0.0.7:8080\n",
		"searchWorkers: {addresses: ['http://10.0.0.7:8080']}":                                              "",
		"searchWorkers: {enabled: true}\nport: 9000\ntls: {existingSecret: cert}\nconfig: {search: {n: 8}}": "search:\n  \"n\": 8\n  workers:\n  - dns+https://r-lutra-pods.apps.svc:9000\n",
	} {
		text := render(t, values).config(t)
		if want == "" && strings.Contains(text, "workers") || !strings.Contains(text, want) {
			t.Errorf("%q gives\n%s, want %s", values, text, want)
		}
	}
}

// The schema of a model has the fields that lutra reads.
func TestTheSchemaOfModelsIsLutras(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Models struct {
				Items struct{ Properties map[string]any }
			}
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range reflect.TypeFor[config.Model]().NumField() {
		if name := reflect.TypeFor[config.Model]().Field(i).Tag.Get("yaml"); name != "-" {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(schema.Properties.Models.Items.Properties)); !slices.Equal(got, want) {
		t.Errorf("the schema lists %v, want %v", got, want)
	}
}

func TestAnotherConfigurationReplacesPods(t *testing.T) {
	sum := func(values, name string) string {
		t.Helper()
		return render(t, values).pod(t).Annotations["checksum/"+name]
	}
	seen := map[string]string{}
	for _, values := range []string{"", "config: {threads: 2}", "models: [{embedded: lutra-tiny-s}]", "requestTimeoutSeconds: 60", "drain: {lameDuckSeconds: 1}", "kvEvents: {enabled: true}", "apiKeys: {existingSecret: team}"} {
		s := sum(values, "config")
		if other, twice := seen[s]; twice || len(s) != 64 {
			t.Errorf("%q and %q have the checksum %q", values, other, s)
		}
		seen[s] = values
	}
	if a, b := sum("replicas: 1", "config"), sum("replicas: 2", "config"); a != b {
		t.Error("another number of replicas replaces pods")
	}
	one, two := "apiKeys: {keys: [a-key-of-some-length]}", "apiKeys: {keys: [b-key-of-some-length]}"
	if sum(one, "keys") == sum(two, "keys") || sum("", "keys") != "" {
		t.Error("other keys do not replace pods")
	}
	if strings.Contains(render(t, one).config(t), "a-key") {
		t.Error("a key is in the ConfigMap")
	}
}
