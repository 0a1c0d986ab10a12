package test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

func itoa(n int32) string { return strconv.Itoa(int(n)) }

// inferencePool is inference.networking.k8s.io/v1's, as far as the chart writes it.
type inferencePool struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		TargetPorts       []struct{ Number int32 } `json:"targetPorts"`
		EndpointPickerRef struct {
			Name        string                 `json:"name"`
			Port        struct{ Number int32 } `json:"port"`
			FailureMode string                 `json:"failureMode"`
		} `json:"endpointPickerRef"`
	} `json:"spec"`
}

func TestThePoolIsThePodsPortAndTheRouteLeadsThere(t *testing.T) {
	r := render(t, pool+"\nport: 9000")
	p := get[inferencePool](t, r, "InferencePool", "")
	if len(p.Spec.TargetPorts) != 1 || p.Spec.TargetPorts[0].Number != r.server(t).Ports[0].ContainerPort {
		t.Errorf("the pool's ports are %v", p.Spec.TargetPorts)
	}
	if p.Spec.EndpointPickerRef.Name != "picker" || p.Spec.EndpointPickerRef.Port.Number != 9002 {
		t.Errorf("the picker is %+v", p.Spec.EndpointPickerRef)
	}
	type route struct {
		Spec struct {
			Rules []struct {
				BackendRefs []struct {
					Group, Kind, Name string
					Port              int32
				}
				Timeouts struct{ Request string }
			}
		}
	}
	backend := func(r *release) any {
		t.Helper()
		for _, o := range r.objects {
			if o.kind == "HTTPRoute" {
				rule := lax[route](t, o.text).Spec.Rules[0]
				if rule.Timeouts.Request != "600s" {
					t.Errorf("a Gateway waits %s", rule.Timeouts.Request)
				}
				return rule.BackendRefs[0]
			}
		}
		t.Fatal("no route")
		return nil
	}
	type ref = struct {
		Group, Kind, Name string
		Port              int32
	}
	if got, want := backend(r), (ref{"inference.networking.k8s.io", "InferencePool", "r-lutra", 0}); got != want {
		t.Errorf("the route leads to %v, want %v", got, want)
	}
	if got, want := backend(render(t, "httpRoute: {enabled: true, parentRefs: [{name: g}]}\nservice: {port: 80}")), (ref{"", "", "r-lutra", 80}); got != want {
		t.Errorf("the route leads to %v, want %v", got, want)
	}
}

var documentedMetric = regexp.MustCompile("`(vllm:[a-z_]+|lutra_[a-z_]+)`")

func TestTheAutoscalersMetricsAreLutras(t *testing.T) {
	text, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range documentedMetric.FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = true
	}
	for _, s := range switches {
		r := render(t, s.values)
		if !r.has("HorizontalPodAutoscaler") {
			continue
		}
		h := get[autoscalingv2.HorizontalPodAutoscaler](t, r, "HorizontalPodAutoscaler", "").Spec
		if len(h.Metrics) == 0 {
			t.Errorf("%s: nothing is looked at", s.name)
		}
		for _, m := range h.Metrics {
			if !documented[m.Pods.Metric.Name] {
				t.Errorf("%s: docs/metrics.md has no %s", s.name, m.Pods.Metric.Name)
			}
			if m.Pods.Target.AverageValue.MilliValue() <= 0 {
				t.Errorf("%s: the target of %s is %v", s.name, m.Pods.Metric.Name, m.Pods.Target.AverageValue)
			}
		}
		workload := "Deployment"
		if r.has("StatefulSet") {
			workload = "StatefulSet"
		}
		if h.ScaleTargetRef.Kind != workload || h.ScaleTargetRef.Name != "r-lutra" {
			t.Errorf("%s: scales %v", s.name, h.ScaleTargetRef)
		}
		for _, o := range r.objects {
			if o.kind == workload && regexp.MustCompile(`(?m)^  replicas:`).MatchString(o.text) {
				t.Errorf("%s: each upgrade undoes what the autoscaler did", s.name)
			}
		}
	}
}

var adapterRules = regexp.MustCompile("(?s)```yaml\n(rules:.*?)```")

func TestTheAdaptersRulesGiveTheAutoscalersMetrics(t *testing.T) {
	m := adapterRules.FindStringSubmatch(read(t, "../../../docs/fleet.md"))
	if m == nil {
		t.Fatal("docs/fleet.md shows no rules")
	}
	type adapter struct {
		Rules struct {
			Custom []struct {
				SeriesQuery, MetricsQuery string
				Resources                 struct {
					Overrides map[string]struct{ Resource string }
				}
			}
		}
	}
	var series []string
	for _, rule := range lax[adapter](t, m[1]).Rules.Custom {
		name, _, _ := strings.Cut(rule.SeriesQuery, "{")
		series = append(series, name)
		if rule.Resources.Overrides["pod"].Resource != "pod" || rule.Resources.Overrides["namespace"].Resource != "namespace" || !strings.Contains(rule.MetricsQuery, "<<.GroupBy>>") {
			t.Errorf("the rule %+v is not of pods", rule)
		}
	}
	h := get[autoscalingv2.HorizontalPodAutoscaler](t, render(t, "autoscaling: {enabled: true}"), "HorizontalPodAutoscaler", "")
	for _, m := range h.Spec.Metrics {
		if !slices.Contains(series, m.Pods.Metric.Name) {
			t.Errorf("no rule gives %s: %v", m.Pods.Metric.Name, series)
		}
	}
}

// reached are the ports of ingress that peers with a label may reach.
func reached(p *networkingv1.NetworkPolicy, label, value string) (ports []string) {
	for _, rule := range p.Spec.Ingress {
		from := slices.ContainsFunc(rule.From, func(peer networkingv1.NetworkPolicyPeer) bool {
			return peer.PodSelector != nil && (len(peer.PodSelector.MatchLabels) == 0 || peer.PodSelector.MatchLabels[label] == value)
		})
		if from || len(rule.From) == 0 {
			for _, port := range rule.Ports {
				ports = append(ports, port.Port.StrVal)
			}
			if len(rule.Ports) == 0 {
				ports = append(ports, "all")
			}
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

func TestTheNetworkPolicyLetsTheRouterInAndNobodyElseAtEvents(t *testing.T) {
	of := func(values string) *networkingv1.NetworkPolicy {
		t.Helper()
		return get[networkingv1.NetworkPolicy](t, render(t, values), "NetworkPolicy", "")
	}
	router := "networkPolicy: {enabled: true, router: [{podSelector: {matchLabels: {app: picker}}}]}\n"
	for _, c := range []struct {
		values         string
		router, others []string
	}{
		{router, []string{"http"}, []string{"http"}},
		{router + "kvEvents: {enabled: true}", []string{"http", "kv-events", "kv-replay"}, []string{"http"}},
		{router + "kvEvents: {enabled: true, replayPort: 0}", []string{"http", "kv-events"}, []string{"http"}},
		{router + "kvEvents: {enabled: true, connect: 'tcp://picker:5557'}", []string{"http", "kv-replay"}, []string{"http"}},
		{"networkPolicy: {enabled: true, clients: []}", nil, nil},
	} {
		p := of(c.values)
		if got := reached(p, "app", "picker"); !slices.Equal(got, c.router) {
			t.Errorf("%s: the router reaches %v, want %v", c.values, got, c.router)
		}
		if got := reached(p, "app", "other"); !slices.Equal(got, c.others) {
			t.Errorf("%s: others reach %v, want %v", c.values, got, c.others)
		}
		if !slices.Equal(p.Spec.PolicyTypes, []networkingv1.PolicyType{"Ingress", "Egress"}) {
			t.Errorf("%s: the policy is of %v", c.values, p.Spec.PolicyTypes)
		}
	}
	to := func(values string) (ports []string) {
		for _, rule := range of(values).Spec.Egress {
			for _, port := range rule.Ports {
				ports = append(ports, port.Port.String())
			}
		}
		return ports
	}
	for values, want := range map[string][]string{
		router:                {"53", "53"},
		router + pulledModels: {"53", "53", "443"},
		router + pulledModels + "modelCache: {kind: claim, existingClaim: m, pull: job}":  {"53", "53"},
		router + "searchWorkers: {enabled: true}":                                         {"53", "53", "http"},
		router + "kvEvents: {enabled: true, connect: 'tcp://picker:5557', replayPort: 0}": {"53", "53", "5557"},
	} {
		if got := to(values); !slices.Equal(got, want) {
			t.Errorf("%s: pods reach the ports %v, want %v", values, got, want)
		}
	}
}

func TestTheMonitorFindsOneServiceAlone(t *testing.T) {
	r := render(t, "serviceMonitor: {enabled: true}\nheadlessService: {enabled: true}")
	type monitor struct {
		Spec struct {
			Selector  struct{ MatchLabels map[string]string }
			Endpoints []struct{ Port, Path string }
		}
	}
	var m monitor
	for _, o := range r.objects {
		if o.kind == "ServiceMonitor" {
			m = *lax[monitor](t, o.text)
		}
	}
	var found []string
	for _, o := range r.objects {
		if o.kind != "Service" {
			continue
		}
		s := get[corev1.Service](t, r, "Service", o.name)
		all := len(m.Spec.Selector.MatchLabels) > 0
		for k, v := range m.Spec.Selector.MatchLabels {
			all = all && s.Labels[k] == v
		}
		if all && s.Spec.Ports[0].Name == m.Spec.Endpoints[0].Port {
			found = append(found, s.Name)
		}
	}
	if !slices.Equal(found, []string{"r-lutra"}) || m.Spec.Endpoints[0].Path != "/metrics" {
		t.Errorf("%+v finds %v", m, found)
	}
	if strings.Contains(render(t, "").config(t), "debug") {
		t.Error("the default configuration shows /debug/state")
	}
}
