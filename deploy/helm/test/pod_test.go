package test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// cancelled are the seconds that a server gives cancelled requests to say so (server/drain.go).
const cancelled = 5

func TestKubernetesWaitsForTheWholeDrain(t *testing.T) {
	for _, s := range switches {
		r := render(t, s.values)
		cfg, err := r.load(t)
		if err != nil {
			t.Fatal(err)
		}
		pod := r.pod(t).Spec
		before := int64(0)
		if hook := r.server(t).Lifecycle; hook != nil {
			before = hook.PreStop.Sleep.Seconds
		}
		grace, drain := *pod.TerminationGracePeriodSeconds, int64(cfg.Server.DrainTimeout/time.Second)
		if grace < before+drain+cancelled {
			t.Errorf("%s: Kubernetes kills after %d s, before the server ends: %d + %d + %d", s.name, grace, before, drain, cancelled)
		}
		if s.name == "default values" && (before == 0 || cfg.Server.DrainTimeout < cfg.Server.RequestTimeout) {
			t.Errorf("an answer is cut: it may take %v and the drain ends after %v", cfg.Server.RequestTimeout, cfg.Server.DrainTimeout)
		}
	}
	pod := render(t, "drain: {preStopSeconds: 7, timeoutSeconds: 60}").pod(t).Spec
	if got := *pod.TerminationGracePeriodSeconds; got != 7+60+cancelled {
		t.Errorf("the grace period is %d s, want %d", got, 7+60+cancelled)
	}
}

func TestProbesAskTheServersPort(t *testing.T) {
	for _, s := range switches {
		r := render(t, s.values)
		c := r.server(t)
		ports := map[string]int32{}
		for _, p := range c.Ports {
			ports[p.Name] = p.ContainerPort
		}
		if want := ":" + itoa(ports["http"]); !strings.Contains(r.config(t), "addr: "+want+"\n") && !strings.Contains(r.config(t), "addr: \""+want+"\"\n") && !strings.Contains(r.config(t), "addr: '"+want+"'\n") {
			t.Errorf("%s: the container's port is %d, and the server's\n%s", s.name, ports["http"], r.config(t))
		}
		scheme := corev1.URISchemeHTTP
		if s.name == "tls" {
			scheme = corev1.URISchemeHTTPS
		}
		for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "readiness": c.ReadinessProbe, "liveness": c.LivenessProbe} {
			if probe.HTTPGet.Port.StrVal != "http" || probe.HTTPGet.Scheme != scheme {
				t.Errorf("%s: the %s probe asks %v", s.name, name, probe.HTTPGet)
			}
		}
		for _, o := range r.objects {
			if o.kind != "Service" {
				continue
			}
			for _, p := range get[corev1.Service](t, r, "Service", o.name).Spec.Ports {
				if _, ok := ports[p.TargetPort.StrVal]; !ok {
					t.Errorf("%s: %s sends to the port %v", s.name, o.name, p.TargetPort)
				}
			}
		}
	}
	c := render(t, "probes: {startupSeconds: 61}").server(t)
	if p := c.StartupProbe; p.FailureThreshold*p.PeriodSeconds < 61 || p.FailureThreshold*p.PeriodSeconds > 65 {
		t.Errorf("a start may take %d times %d s, want 61", p.FailureThreshold, p.PeriodSeconds)
	}
}

// Images have settings of their own, which variables of the pod override.
func TestTheVariablesOfTheImageDoNotOverrideTheConfiguration(t *testing.T) {
	c := render(t, "port: 9000").server(t)
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "LUTRA_SERVER_ADDR" })
	if i < 0 || c.Env[i].Value != ":9000" {
		t.Errorf("the variables are %v", c.Env)
	}
	if i = slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "POD_IP" }); i < 0 || c.Env[i].ValueFrom.FieldRef.FieldPath != "status.podIP" {
		t.Errorf("the pod does not know its address: %v", c.Env)
	}
}

func TestSelectorsFindThePodsThatServeAndNoOthers(t *testing.T) {
	for _, s := range switches {
		r := render(t, s.values)
		matches := func(selector, labels map[string]string) bool {
			for k, v := range selector {
				if labels[k] != v {
					return false
				}
			}
			return len(selector) > 0
		}
		selectors := map[string]map[string]string{}
		for _, o := range r.objects {
			switch o.kind {
			case "Service":
				selectors[o.name] = get[corev1.Service](t, r, o.kind, o.name).Spec.Selector
			case "PodDisruptionBudget":
				selectors[o.kind] = get[policyv1.PodDisruptionBudget](t, r, o.kind, "").Spec.Selector.MatchLabels
			case "Deployment":
				selectors[o.kind] = get[appsv1.Deployment](t, r, o.kind, "").Spec.Selector.MatchLabels
			case "InferencePool":
				selectors[o.kind] = get[inferencePool](t, r, o.kind, "").Spec.Selector.MatchLabels
			}
		}
		for name, selector := range selectors {
			if !matches(selector, r.pod(t).Labels) {
				t.Errorf("%s: %s selects %v, and pods are %v", s.name, name, selector, r.pod(t).Labels)
			}
			if r.has("Pod") && matches(selector, get[corev1.Pod](t, r, "Pod", "").Labels) {
				t.Errorf("%s: %s selects the test's pod", s.name, name)
			}
			if r.has("Job") && matches(selector, get[batchv1.Job](t, r, "Job", "").Spec.Template.Labels) {
				t.Errorf("%s: %s selects the job's pod", s.name, name)
			}
		}
	}
}

// pulled are the arguments of containers that download.
func pulled(list []corev1.Container) (names []string) {
	for _, c := range list {
		names = append(names, strings.Join(c.Args, " "))
	}
	return names
}

func TestModelsComeBeforeTheServerAndOnlyWhereTheyMust(t *testing.T) {
	pulls := []string{"pull bonsai-1.7b", "pull hf:Qwen/Qwen3-4B-GGUF:Q4_K_M", "pull hf:Qwen/Qwen3-0.6B-GGUF:Q8_0"}
	for _, s := range switches {
		r := render(t, s.values)
		pod, server := r.pod(t), r.server(t)
		i := slices.IndexFunc(server.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "models" && m.MountPath == "/models" })
		if i < 0 {
			t.Fatalf("%s: no models among %v", s.name, server.VolumeMounts)
		}
		downloads := s.name == "models the server downloads"
		if offline := slices.Contains(server.Args, "--offline"); offline == downloads || server.VolumeMounts[i].ReadOnly == downloads {
			t.Errorf("%s: arguments %v, mounts %v", s.name, server.Args, server.VolumeMounts)
		}
		want := []string{}
		if strings.HasPrefix(s.values, pulledModels) && !downloads && s.name != "a job" {
			want = pulls
		}
		if got := pulled(pod.Spec.InitContainers); !slices.Equal(got, want) {
			t.Errorf("%s: %q are pulled, want %q", s.name, got, want)
		}
	}
	job := get[batchv1.Job](t, render(t, pulledModels+"modelCache: {kind: claim, existingClaim: models, pull: job}"), "Job", "")
	if got := pulled(job.Spec.Template.Spec.Containers); !slices.Equal(got, pulls) || job.Annotations["helm.sh/hook"] != "pre-install,pre-upgrade" {
		t.Errorf("the job of %v pulls %q, want %q", job.Annotations, got, pulls)
	}
	verifier := render(t, "config: {verifiers: [{path: 'hf:o/judge'}], engine: {draft_model: qwen3-0.6b}}").pod(t)
	if got, want := pulled(verifier.Spec.InitContainers), []string{"pull hf:o/judge", "pull qwen3-0.6b"}; !slices.Equal(got, want) {
		t.Errorf("%q are pulled, want %q", got, want)
	}
}

func TestTokensOfTheHubAreForThoseWhoDownload(t *testing.T) {
	token := func(list []corev1.Container) bool {
		return slices.ContainsFunc(list, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
				return e.Name == "HF_TOKEN" && e.ValueFrom.SecretKeyRef.Name == "hub" && e.ValueFrom.SecretKeyRef.Key == "token"
			})
		})
	}
	for pull, want := range map[string][2]bool{"init": {true, false}, "none": {false, true}} {
		spec := render(t, pulledModels+"huggingFace: {existingSecret: hub}\nmodelCache: {pull: "+pull+"}").pod(t).Spec
		if got := [2]bool{token(spec.InitContainers), token(spec.Containers)}; got != want {
			t.Errorf("pull %s: init containers and server know the token: %v, want %v", pull, got, want)
		}
	}
}

// Helm merges objects, so that only null takes a default away.
func TestDefaultsOfObjectsCanBeTakenAway(t *testing.T) {
	if c := render(t, "resources: null").server(t); c.Resources.Limits != nil || c.Resources.Requests != nil {
		t.Errorf("resources of null are %v", c.Resources)
	}
	if c := render(t, "resources: {limits: null, requests: {cpu: 500m}}").server(t); c.Resources.Limits != nil || c.Resources.Requests.Cpu().MilliValue() != 500 {
		t.Errorf("resources without limits are %v", c.Resources)
	}
	if s := render(t, "runAs: null").pod(t).Spec.SecurityContext; s.RunAsUser != nil || s.FSGroup != nil || !*s.RunAsNonRoot {
		t.Errorf("the cluster does not choose the user: %v", s)
	}
}

// Of such pods the kubelet can give each cores of its own.
func TestPodsAreGuaranteedTheirCores(t *testing.T) {
	spec := render(t, pulledModels).pod(t).Spec
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			if limit.IsZero() || request.Cmp(limit) != 0 {
				t.Errorf("%s has %v of %s, and at most %v", c.Name, &request, name, &limit)
			}
		}
		if cpu := c.Resources.Limits.Cpu(); cpu.MilliValue()%1000 != 0 {
			t.Errorf("%s has %v cores, want whole ones", c.Name, cpu)
		}
	}
}
