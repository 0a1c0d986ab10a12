package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yannh/kubeconform/pkg/resource"
	"github.com/yannh/kubeconform/pkg/validator"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// conform is kubeconform with the schemas of a folder of testdata/schemas.
func conform(t *testing.T, folder string) validator.Validator {
	t.Helper()
	v, err := validator.New([]string{"testdata/schemas/" + folder + "/{{ .ResourceKind }}{{ .KindSuffix }}.json"}, validator.Opts{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestEverySwitchRendersObjectsThatKubernetesTakes(t *testing.T) {
	for _, folder := range []string{"oldest", "newest"} {
		valid := conform(t, folder)
		for _, s := range switches {
			t.Run(folder+" "+s.name, func(t *testing.T) {
				r := render(t, s.values)
				for _, o := range r.objects {
					if res := valid.ValidateResource(resource.Resource{Path: o.name, Bytes: []byte(o.text)}); res.Status != validator.Valid {
						t.Errorf("%s/%s: %v\n%s", o.kind, o.name, res.Err, o.text)
					}
				}
			})
		}
	}
}

func TestASwitchAddsTheObjectsItIsFor(t *testing.T) {
	for _, s := range switches {
		r := render(t, s.values)
		want := slices.Concat(always, strings.Fields(s.kinds))
		if !strings.Contains(s.kinds, "StatefulSet") {
			want = append(want, "Deployment")
		}
		want = slices.DeleteFunc(want, func(kind string) bool {
			return s.name == "no account" && slices.Contains([]string{"ServiceAccount", "PodDisruptionBudget"}, kind) || s.name == "tls" && kind == "Pod"
		})
		var got []string
		for _, o := range r.objects {
			got = append(got, o.kind)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", s.name, got, want)
		}
	}
}

// What is wrong is found by what looks for it.
func TestAFieldThatIsUnknownOrOfAnotherTypeIsFound(t *testing.T) {
	deployment := ""
	for _, o := range render(t, pool).objects {
		if o.kind == "Deployment" {
			deployment = o.text
		}
	}
	for _, folder := range []string{"oldest", "newest"} {
		valid := conform(t, folder)
		for _, change := range [][2]string{
			{"readOnlyRootFilesystem", "readOnlyRootFileSystem"},
			{"periodSeconds: 5", "periodSeconds: often"},
			{"sleep:\n", "doze:\n"},
			{"kind: Deployment", "kind: Deploymnt"},
			{"  selector:\n    matchLabels:", "  elector:\n    matchLabels:"},
		} {
			bad := strings.Replace(deployment, change[0], change[1], 1)
			if bad == deployment {
				t.Errorf("%q is not in the Deployment", change[0])
			}
			if res := valid.ValidateResource(resource.Resource{Bytes: []byte(bad)}); res.Status == validator.Valid {
				t.Errorf("%s: %q is taken", folder, change[1])
			}
		}
	}
}

// specs are all pods that a release runs.
func (r *release) specs(t *testing.T) map[string]*corev1.PodSpec {
	t.Helper()
	list := map[string]*corev1.PodSpec{"server": &r.pod(t).Spec}
	if r.has("Job") {
		list["job"] = &get[batchv1.Job](t, r, "Job", "").Spec.Template.Spec
	}
	if r.has("Pod") {
		list["test"] = &get[corev1.Pod](t, r, "Pod", "").Spec
	}
	return list
}

// restricted is what the restricted profile of Pod Security has against a pod; empty: nothing.
func restricted(t *testing.T, spec *corev1.PodSpec) string {
	t.Helper()
	latest := api.LatestVersion()
	e, err := policy.NewEvaluator(policy.DefaultChecks(), &latest)
	if err != nil {
		t.Fatal(err)
	}
	all := policy.AggregateCheckResults(e.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: latest}, &metav1.ObjectMeta{}, spec))
	return all.ForbiddenDetail()
}

func TestAllPodsAreRestrictedAndKnowNoToken(t *testing.T) {
	for _, s := range switches {
		for name, spec := range render(t, s.values).specs(t) {
			if bad := restricted(t, spec); bad != "" {
				t.Errorf("%s: %s: %s", s.name, name, bad)
			}
			if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
				t.Errorf("%s: %s: gets a token of the service account", s.name, name)
			}
			if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
				t.Errorf("%s: %s: gets variables of services", s.name, name)
			}
			for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
				if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
					t.Errorf("%s: %s: %s may write into its image", s.name, name, c.Name)
				}
			}
		}
	}
	spec := render(t, "").pod(t).Spec
	spec.SecurityContext.SeccompProfile = nil
	spec.Containers[0].SecurityContext.Capabilities = nil
	if bad := restricted(t, &spec); !strings.Contains(bad, "seccomp") || !strings.Contains(bad, "capabilities") {
		t.Errorf("a pod without both is refused for %q", bad)
	}
}

// A schema says nothing of what labels may hold.
func TestNamesAndLabelsAreValid(t *testing.T) {
	for _, s := range switches {
		r := render(t, s.values)
		labels := []map[string]string{r.pod(t).Labels}
		for _, o := range r.objects {
			is := lax[struct {
				Metadata struct{ Labels map[string]string }
			}](t, o.text)
			labels = append(labels, is.Metadata.Labels)
			if bad := validation.IsDNS1035Label(o.name); len(bad) > 0 {
				t.Errorf("%s: %s/%s: %v", s.name, o.kind, o.name, bad)
			}
		}
		for _, set := range labels {
			if len(set) < 3 {
				t.Errorf("%s: the labels are %v", s.name, set)
			}
			for key, value := range set {
				if bad := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)); len(bad) > 0 {
					t.Errorf("%s: %s=%s: %v", s.name, key, value, bad)
				}
			}
		}
	}
}

func TestNamesFit(t *testing.T) {
	long := strings.Repeat("otter-", 20)
	for _, values := range []string{"", "nameOverride: " + strings.Repeat("x", 63), "fullnameOverride: " + strings.Repeat("y", 63)} {
		vals, err := loader.LoadValues(strings.NewReader(values + "\nmodels: [{path: bonsai-1.7b}]\nmodelCache: {kind: claim, existingClaim: c, pull: job}\nheadlessService: {enabled: true}"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := renderAs(long[:53], "apps", vals) // the longest that Helm takes
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range r.objects {
			if len(o.name) > 52 || strings.HasSuffix(o.name, "-") { // pods of a StatefulSet and of a Job append to it
				t.Errorf("%s has the name %s", o.kind, o.name)
			}
		}
	}
}

func TestHelmFindsNothingToMend(t *testing.T) {
	version, err := common.ParseKubeVersion("v1.37.0")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range switches {
		vals, err := loader.LoadValues(strings.NewReader(s.values))
		if err != nil {
			t.Fatal(err)
		}
		l := lint.RunAll(chartDir, vals, "apps", lint.WithKubeVersion(version))
		for _, m := range l.Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", s.name, m)
			}
		}
	}
}

func TestNotesSayHowLongAPodTakes(t *testing.T) {
	notes := render(t, "apiKeys: {existingSecret: s}").notes
	for _, want := range []string{"http://r-lutra.apps.svc:8080/v1", "deployment/r-lutra", fmt.Sprint(10 + 600 + 5)} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	if strings.Contains(notes, "No key") || !strings.Contains(render(t, "").notes, "No key") {
		t.Errorf("the notes are wrong about keys:\n%s", notes)
	}
}
