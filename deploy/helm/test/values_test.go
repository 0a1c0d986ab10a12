package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// leaves are the values below v by their dotted names. wholes are objects that Kubernetes
// defines: one value each.
func leaves(v any, at string, into map[string]any) {
	wholes := []string{"resources", "runAs"}
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 || slices.Contains(wholes, at) {
		into[at] = v
		return
	}
	for name, value := range m {
		leaves(value, strings.TrimPrefix(at+"."+name, "."), into)
	}
}

var (
	row  = regexp.MustCompile("(?m)^\\| (`[^|]*) \\| (`[^|]*) \\| (.*) \\|$|^\\| (`[^|]*) \\| (`[^|]*) \\| \\|$")
	span = regexp.MustCompile("`([^`]+)`")
)

func TestTheTableHasEveryValueWithItsDefault(t *testing.T) {
	var values map[string]any
	if err := yaml.Unmarshal([]byte(read(t, chartDir+"/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{}
	leaves(values, "", want)
	got := map[string]any{}
	for _, m := range row.FindAllStringSubmatch(read(t, chartDir+"/README.md"), -1) {
		names, defaults := span.FindAllStringSubmatch(m[1]+m[4], -1), span.FindAllStringSubmatch(m[2]+m[5], -1)
		if len(names) != len(defaults) {
			t.Fatalf("%d names and %d defaults in %s", len(names), len(defaults), m[0])
		}
		for i, name := range names {
			var v any
			if err := yaml.Unmarshal([]byte(defaults[i][1]), &v); err != nil {
				t.Fatalf("%s: %v", name[1], err)
			}
			got[name[1]] = v
		}
	}
	for name, v := range want {
		if is, ok := got[name]; !ok {
			t.Errorf("README.md has no row for %s", name)
		} else if !reflect.DeepEqual(is, v) {
			t.Errorf("README.md says that %s is %v, and values.yaml %v", name, is, v)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("README.md has a row for %s, which values.yaml has not", name)
		}
	}
}

func TestTheSchemaHasEveryValueAndNoOther(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal([]byte(read(t, chartDir+"/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal([]byte(read(t, chartDir+"/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	var compare func(at string, s map[string]any, v any)
	compare = func(at string, s map[string]any, v any) {
		properties, ok := s["properties"].(map[string]any)
		m, isMap := v.(map[string]any)
		if !ok || !isMap {
			return
		}
		if s["additionalProperties"] != false {
			t.Errorf("%s: the schema takes any further value", at)
		}
		for name := range m {
			if properties[name] == nil {
				t.Errorf("%s.%s is not in the schema", at, name)
			} else {
				compare(at+"."+name, properties[name].(map[string]any), m[name])
			}
		}
		for name := range properties {
			// Helm sets global; the last are the parts of what Kubernetes defines.
			if _, ok := m[name]; !ok && at+"."+name != ".global" && !slices.Contains([]string{".resources", ".affinity"}, at) {
				t.Errorf("%s.%s is in the schema alone", at, name)
			}
		}
	}
	compare("", schema, values)
}

func TestMistakesInValuesAreNamed(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"replica: 2", "additional properties 'replica' not allowed"},
		{"image: {tags: v1}", "at '/image': additional properties 'tags' not allowed"},
		{"image: {tag: 1.2}", "at '/image/tag': got number, want string"},
		{"image: {tag: 'v1 beta'}", "at '/image/tag': 'v1 beta' does not match pattern"},
		{"replicas: two", "at '/replicas': got string, want integer"},
		{"replicas: -1", "at '/replicas': minimum: got -1, want 0"},
		{"port: 65536", "at '/port': maximum: got 65,536, want 65,535"},
		{"models: [{path: bonsai-1.7b, embedded: lutra-tiny-s}]", "at '/models/0': 'oneOf' failed"},
		{"models: [{name: x}]", "at '/models/0': 'oneOf' failed"},
		{"models: [{path: ../secret}]", "at '/models/0/path': '../secret' does not match pattern"},
		{"models: [{path: m, contxt: 1}]", "additional properties 'contxt' not allowed"},
		{"requestTimeoutSeconds: 0", "at '/requestTimeoutSeconds': minimum: got 0, want 1"},
		{"requestTimeoutSeconds: 10m", "at '/requestTimeoutSeconds': got string, want integer"},
		{"drain: {preStopSeconds: -1}", "at '/drain/preStopSeconds': minimum"},
		{"drain: {lameDuckSeconds: 700}", "drain.lameDuckSeconds: is part of drain.timeoutSeconds, and longer"},
		{"probes: {livenessPath: /}", "at '/probes/livenessPath': value must be one of '/healthz', '/readyz'"},
		{"apiKeys: {keys: [\"a\\nb\"]}", "does not match pattern"},
		{"apiKeys: {keys: [a-key-of-some-length], existingSecret: team}", "apiKeys: set either keys or existingSecret"},
		{"modelCache: {kind: hostPath}", "at '/modelCache/kind': value must be one of 'emptyDir', 'claim', 'perReplica'"},
		{"modelCache: {pull: job, kind: claim}", "modelCache.pull: a job wants modelCache.existingClaim"},
		{"modelCache: {existingClaim: m}", "modelCache.existingClaim: is for modelCache.kind claim"},
		{"modelCache: {size: lots}", "at '/modelCache/size': 'lots' does not match pattern"},
		{"kvEvents: {connect: 'udp://picker:1'}", "at '/kvEvents/connect'"},
		{"kvEvents: {enabled: true, port: 8080}", "port, kvEvents.port and kvEvents.replayPort: must differ"},
		{"kvEvents: {enabled: true, replayPort: 5556}", "must differ"},
		{"searchWorkers: {addresses: ['pods:8080']}", "at '/searchWorkers/addresses/0'"},
		{"podDisruptionBudget: {maxUnavailable: 101%}", "at '/podDisruptionBudget/maxUnavailable'"},
		{"autoscaling: {enabled: true, minReplicas: 5}", "autoscaling.minReplicas: is more than maxReplicas"},
		{"autoscaling: {enabled: true, waitingTarget: '', kvUsageTarget: ''}", "autoscaling: needs waitingTarget or kvUsageTarget"},
		{"autoscaling: {waitingTarget: 2}", "at '/autoscaling/waitingTarget': got number, want string"},
		{"networkPolicy: {enabled: true}\nkvEvents: {enabled: true}", "networkPolicy.router: say who reads the KV events"},
		{"inferencePool: {enabled: true}", "inferencePool.endpointPicker.name: name the picker's Service"},
		{"inferencePool: {enabled: true, endpointPicker: {name: p}}\ntls: {existingSecret: c}", "inferencePool: a picker reads metrics by plain http"},
		{"httpRoute: {enabled: true}", "httpRoute.parentRefs: name the Gateway"},
		{"httpRoute: {hostnames: ['https://chat.example']}", "at '/httpRoute/hostnames/0'"},
		{"runAs: {user: 0, group: 0}", "at '/runAs/user': minimum: got 0, want 1"},
		{"config: {models: []}", "config.models: set models, from which the chart writes it"},
		{"config: {server: {addr: ':1'}}", "config.server.addr: set port, from which the chart writes it"},
		{"config: {server: {api_keys: [k]}}", "config.server.api_keys: set apiKeys"},
		{"config: {server: {drain_timeout: 1s}}", "config.server.drain_timeout: set drain.timeoutSeconds"},
		{"config: {kv: {events: 'tcp://*:1'}}", "config.kv.events: set kvEvents"},
		{"config: {search: {workers: [a]}}", "config.search.workers: set searchWorkers"},
		{"config: {server: [a]}", "config.server: want keys with values"},
		{"podLabels: {app.kubernetes.io/component: mine}", "invalid propertyName 'app.kubernetes.io/component'"},
		{"podAnnotations: {checksum/config: mine}", "invalid propertyName 'checksum/config'"},
		{"config: text", "at '/config': got string, want object"},
	} {
		if _, err := tryRender(c.values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.values, err, c.want)
		}
	}
}

// TestSettingsThatAreWrongEndThePodWithTheirName is what the chart leaves to the server.
func TestSettingsThatAreWrongEndThePodWithTheirName(t *testing.T) {
	for values, want := range map[string]string{
		"config: {kv: {blok: 1}}":           `unknown key "kv.blok"`,
		"config: {kv: {block: 0}}":          "kv.block: 0 is outside",
		"config: {server: {max_body: 1.5}}": "server.max_body",
		"models: [{embedded: lutra-huge}]":  "lutra-huge",
	} {
		if _, err := render(t, values).load(t); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", values, err, want)
		}
	}
}

var command = regexp.MustCompile(`(?m)^helm (install|upgrade) (\S+) deploy/helm/lutra\b(.*)$`)

// TestTheCommandsOfTheDocumentsRender reads helm's command lines in docs/fleet.md.
func TestTheCommandsOfTheDocumentsRender(t *testing.T) {
	text := strings.ReplaceAll(read(t, "../../../docs/fleet.md"), "\\\n", " ")
	all := command.FindAllStringSubmatch(text, -1)
	if len(all) < 4 {
		t.Fatalf("%d commands: the test has lost sight of them", len(all))
	}
	for _, m := range all {
		values := map[string]any{}
		words := shellWords(m[3])
		for i := 0; i < len(words); i += 2 {
			if i+1 == len(words) {
				t.Fatalf("%s: %s has no value", m[0], words[i])
			}
			var err error
			switch words[i] {
			case "-f":
				name := strings.TrimPrefix(words[i+1], "deploy/helm/")
				var more map[string]any
				if more, err = loader.LoadValues(strings.NewReader(read(t, "../"+name))); err == nil {
					values = loader.MergeMaps(values, more)
				}
			case "--set":
				err = strvals.ParseInto(words[i+1], values)
			case "--set-json":
				err = strvals.ParseJSON(words[i+1], values)
			case "-n", "--version":
			default:
				err = fmt.Errorf("the test does not know %s", words[i])
			}
			if err != nil {
				t.Fatalf("%s: %v", m[0], err)
			}
		}
		r, err := renderAs(m[2], "default", values)
		if err != nil {
			t.Errorf("%s: %v", m[0], err)
			continue
		}
		if _, err := r.load(t); err != nil {
			t.Errorf("%s: %v", m[0], err)
		}
	}
}

// shellWords are the words of a command line, with ' around some.
func shellWords(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}
