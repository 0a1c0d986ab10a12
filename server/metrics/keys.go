package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lutra-lm/lutra/server/admission"
)

// Keys returns what clients have had with each key that is configured.
type Keys func() (list []admission.Usage, since time.Time)

// keyCollector shows what clients have had with keys: only of those that are configured now,
// so that there are no more series than keys.
type keyCollector struct {
	keys                                Keys
	requests, tokens, refused, underWay *prometheus.Desc
}

func newKeyCollector(keys Keys) *keyCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("lutra_key_"+name, help, append([]string{"key"}, labels...), nil)
	}
	return &keyCollector{keys: keys,
		requests: desc("requests_total", "Requests with a key, by the key's name."),
		tokens:   desc("tokens_total", "Tokens of requests with a key, by the key's name and whether of the prompt or the completion.", "kind"),
		refused:  desc("refused_total", "Requests that a limit of their key has refused, by the key's name and the limit.", "limit"),
		underWay: desc("requests_in_flight", "Requests of a key that are under way."),
	}
}

// Describe implements prometheus.Collector.
func (c *keyCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.requests, c.tokens, c.refused, c.underWay} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *keyCollector) Collect(ch chan<- prometheus.Metric) {
	list, _ := c.keys()
	for _, u := range list {
		counter := func(d *prometheus.Desc, n int64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{u.Key.Name}, labels...)...)
		}
		counter(c.requests, u.Requests)
		counter(c.tokens, u.Prompt, "prompt")
		counter(c.tokens, u.Completion, "completion")
		for limit, n := range u.Refused {
			counter(c.refused, n, limit)
		}
		ch <- prometheus.MustNewConstMetric(c.underWay, prometheus.GaugeValue, float64(u.Running), u.Key.Name)
	}
}
