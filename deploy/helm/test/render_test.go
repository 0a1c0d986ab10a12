package test

import (
	"path"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

const chartDir = "../lutra"

// release is what helm install applies.
type release struct {
	objects []object
	notes   string
}

// object is one of Kubernetes, as rendered.
type object struct {
	kind, name string
	hook       string // helm.sh/hook
	text       string
}

// render is the chart with values in YAML, installed as r in namespace apps.
func render(t *testing.T, values string) *release {
	t.Helper()
	r, err := tryRender(values)
	if err != nil {
		t.Fatalf("%s\n%v", values, err)
	}
	return r
}

func tryRender(values string) (*release, error) {
	vals, err := loader.LoadValues(strings.NewReader(values))
	if err != nil {
		return nil, err
	}
	return renderAs("r", "apps", vals)
}

// renderAs is render of values that are read, for a release's name and namespace.
func renderAs(name, namespace string, values map[string]any) (*release, error) {
	chart, err := loader.LoadDir(chartDir)
	if err != nil {
		return nil, err
	}
	full, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, full)
	if err != nil {
		return nil, err
	}
	r := &release{}
	for file, text := range files {
		if path.Base(file) == "NOTES.txt" {
			r.notes = text
			continue
		}
		for doc := range strings.SplitSeq("\n"+text, "\n---") {
			var is struct {
				Kind     string
				Metadata struct {
					Name        string
					Annotations map[string]string
				}
			}
			if err := yaml.Unmarshal([]byte(doc), &is); err != nil {
				return nil, err
			}
			if is.Kind != "" {
				r.objects = append(r.objects, object{is.Kind, is.Metadata.Name, is.Metadata.Annotations["helm.sh/hook"], doc})
			}
		}
	}
	slices.SortFunc(r.objects, func(a, b object) int { return strings.Compare(a.kind+"/"+a.name, b.kind+"/"+b.name) })
	return r, nil
}

// names are the kinds and names of all objects.
func (r *release) names() (list []string) {
	for _, o := range r.objects {
		list = append(list, o.kind+"/"+o.name)
	}
	return list
}

// has reports whether there is an object of a kind.
func (r *release) has(kind string) bool {
	return slices.ContainsFunc(r.objects, func(o object) bool { return o.kind == kind })
}

// get is the one object of a kind, or that with a name, as a T. A field that T has not is
// an error.
func get[T any](t *testing.T, r *release, kind, name string) *T {
	t.Helper()
	var found []object
	for _, o := range r.objects {
		if o.kind == kind && (name == "" || o.name == name) {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d of %s/%s among %v, want one", len(found), kind, name, r.names())
	}
	v := new(T)
	if err := yaml.UnmarshalStrict([]byte(found[0].text), v); err != nil {
		t.Fatalf("%s: %v\n%s", kind, err, found[0].text)
	}
	return v
}

// pod is the template of the pods that serve.
func (r *release) pod(t *testing.T) *corev1.PodTemplateSpec {
	t.Helper()
	if r.has("StatefulSet") {
		return &get[appsv1.StatefulSet](t, r, "StatefulSet", "").Spec.Template
	}
	return &get[appsv1.Deployment](t, r, "Deployment", "").Spec.Template
}

// server is the container that serves.
func (r *release) server(t *testing.T) *corev1.Container {
	t.Helper()
	c := r.pod(t).Spec.Containers
	if len(c) != 1 {
		t.Fatalf("%d containers, want one", len(c))
	}
	return &c[0]
}

// config is the text of config.yaml.
func (r *release) config(t *testing.T) string {
	t.Helper()
	return get[corev1.ConfigMap](t, r, "ConfigMap", "").Data["config.yaml"]
}

// lax is a T read from an object's text, whatever else that has.
func lax[T any](t *testing.T, text string) *T {
	t.Helper()
	v := new(T)
	if err := yaml.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
	return v
}
