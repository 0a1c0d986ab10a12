// Command schemas writes JSON schemas of the kinds that the chart renders, from modules that
// the Go module proxy has, in the layout that kubeconform looks for:
//
//	cd deploy/helm/test && go run ./schemas
//
// Every object takes the listed fields alone; descriptions are left out. README.md says
// where they come from.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// sets are the oldest and the newest releases that the chart is held against.
var sets = []struct {
	folder, kubernetes string
	resources          []resource
}{
	{"oldest", "v1.30.14", []resource{ // of what Chart.yaml allows
		{"sigs.k8s.io/gateway-api@v1.2.1", httpRoute}, // the first whose timeouts are not experimental
		{"sigs.k8s.io/gateway-api-inference-extension@v1.0.0", inferencePool},
		{"github.com/prometheus-operator/prometheus-operator@v0.75.2", serviceMonitor},
	}},
	{"newest", "v1.37.2", []resource{
		{"sigs.k8s.io/gateway-api@v1.6.1", httpRoute},
		{"sigs.k8s.io/gateway-api-inference-extension@v1.6.0", inferencePool},
		{"github.com/prometheus-operator/prometheus-operator@v0.92.0", serviceMonitor},
	}},
}

// resource is the definition of a custom resource: a file of a module.
type resource struct{ module, file string }

const (
	httpRoute      = "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"
	inferencePool  = "config/crd/bases/inference.networking.k8s.io_inferencepools.yaml"
	serviceMonitor = "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"
)

// kinds of Kubernetes, by the file of its OpenAPI that has them.
var kinds = map[string][]string{
	"api__v1":                     {"v1.ConfigMap", "v1.PersistentVolumeClaim", "v1.Pod", "v1.Secret", "v1.Service", "v1.ServiceAccount"},
	"apis__apps__v1":              {"v1.Deployment", "v1.StatefulSet"},
	"apis__autoscaling__v2":       {"v2.HorizontalPodAutoscaler"},
	"apis__batch__v1":             {"v1.Job"},
	"apis__networking.k8s.io__v1": {"v1.NetworkPolicy"},
	"apis__policy__v1":            {"v1.PodDisruptionBudget"},
}

func main() {
	log.SetFlags(0)
	for _, set := range sets {
		writeKubernetes(set.folder, module("k8s.io/kubernetes@"+set.kubernetes))
		for _, r := range set.resources {
			writeResource(set.folder, filepath.Join(module(r.module), filepath.FromSlash(r.file)))
		}
	}
}

// writeResource writes version v1 of a custom resource into folder.
func writeResource(folder, file string) {
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				}
			}
		}
	}
	text, err := os.ReadFile(file)
	check(err)
	check(yaml.Unmarshal(text, &crd))
	for _, v := range crd.Spec.Versions {
		if v.Name == "v1" {
			write(folder, crd.Spec.Names.Kind, crd.Spec.Group, v.Name, strictObject(v.Schema.OpenAPIV3Schema))
			return
		}
	}
	log.Fatalf("%s has no version v1", file)
}

// writeKubernetes writes the kinds that Kubernetes' source in dir has into folder, and one
// file of the definitions that they share.
func writeKubernetes(folder, dir string) {
	shared, wanted := map[string]any{}, map[string]any{}
	var texts []string
	for _, file := range slices.Sorted(maps.Keys(kinds)) {
		text, err := os.ReadFile(filepath.Join(dir, "api", "openapi-spec", "v3", file+"_openapi.json"))
		check(err)
		var spec struct {
			Components struct{ Schemas map[string]map[string]any }
		}
		check(json.Unmarshal(text, &spec))
		for name, definition := range spec.Components.Schemas {
			schema := strictObject(definition)
			shared[name] = schema
			groups, _ := definition["x-kubernetes-group-version-kind"].([]any)
			if slices.ContainsFunc(kinds[file], func(kind string) bool { return strings.HasSuffix(name, "."+kind) }) && len(groups) == 1 {
				is := groups[0].(map[string]any)
				texts = append(texts, write(folder, is["kind"].(string), is["group"].(string), is["version"].(string), maps.Clone(schema)))
			}
		}
	}
	for _, text := range texts {
		reach(text, shared, wanted)
	}
	save(folder, "definitions.json", wanted)
}

// reach adds those definitions of shared to wanted that the text of a schema refers to, one
// by another.
func reach(text string, shared, wanted map[string]any) {
	for _, part := range strings.Split(text, `"definitions.json#/`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		if wanted[name] == nil && shared[name] != nil {
			wanted[name] = shared[name]
			more, err := json.Marshal(shared[name])
			check(err)
			reach(string(more), shared, wanted)
		}
	}
}

// strict is a schema whose objects take no other fields than those it lists, without what
// no validation reads.
func strict(schema any) any {
	switch s := schema.(type) {
	case []any:
		for i := range s {
			s[i] = strict(s[i])
		}
	case map[string]any:
		return strictObject(s)
	}
	return schema
}

func strictObject(s map[string]any) map[string]any {
	keep := s["x-kubernetes-preserve-unknown-fields"] == true
	if s["x-kubernetes-int-or-string"] == true {
		return map[string]any{"type": []string{"integer", "string"}}
	}
	out := map[string]any{}
	for key, value := range s {
		switch {
		case key == "properties":
			fields := map[string]any{}
			for name, field := range value.(map[string]any) {
				fields[name] = strict(field)
			}
			out[key] = fields
		case key == "$ref":
			out[key] = strings.Replace(value.(string), "#/components/schemas/", "definitions.json#/", 1)
		case slices.Contains([]string{"description", "default", "example", "externalDocs"}, key) || strings.HasPrefix(key, "x-"):
		default:
			out[key] = strict(value)
		}
	}
	if out["properties"] != nil && out["additionalProperties"] == nil && !keep {
		out["additionalProperties"] = false
	}
	return out
}

// write saves the schema of a kind under the name that kubeconform gives it, and returns
// its text. Nobody renders a status.
func write(folder, kind, group, version string, schema map[string]any) string {
	properties := maps.Clone(schema["properties"].(map[string]any))
	delete(properties, "status")
	properties["kind"] = map[string]any{"const": kind}
	properties["apiVersion"] = map[string]any{"const": strings.TrimPrefix(group+"/"+version, "/")}
	schema["properties"] = properties
	schema["required"] = []string{"apiVersion", "kind", "metadata"}
	parts := slices.DeleteFunc([]string{kind, strings.Split(group, ".")[0], version}, func(part string) bool { return part == "" })
	return save(folder, strings.ToLower(strings.Join(parts, "-"))+".json", schema)
}

func save(folder, name string, v any) string {
	dir := filepath.Join("testdata", "schemas", folder)
	check(os.MkdirAll(dir, 0o755))
	text, err := json.Marshal(v)
	check(err)
	check(os.WriteFile(filepath.Join(dir, name), append(text, '\n'), 0o644))
	return string(text)
}

// module is the folder of a module, which is downloaded if need be.
func module(at string) string {
	cmd := exec.Command("go", "mod", "download", "-json", at)
	cmd.Dir = os.TempDir() // whatever this module requires
	out, err := cmd.Output()
	var m struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &m); m.Dir == "" {
		log.Fatalf("%s: %v %v %s", at, err, jsonErr, m.Error)
	}
	return m.Dir
}

func check(err error) {
	if err != nil {
		log.Fatal(fmt.Errorf("schemas: %w", err))
	}
}
