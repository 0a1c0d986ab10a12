package engines

import (
	"github.com/prometheus/client_golang/prometheus"
)

// expertCollector reads at each scrape what models have found in memory of the experts
// that do not all fit there.
type expertCollector struct{ hosts hostSeq }

var (
	expertHits   = prometheus.NewDesc("lutra_expert_hits_total", "Experts that a layer of a step found in memory.", []string{"model_name"}, nil)
	expertMisses = prometheus.NewDesc("lutra_expert_misses_total", "Experts that a layer of a step had read from the file.", []string{"model_name"}, nil)
	expertRead   = prometheus.NewDesc("lutra_expert_read_bytes_total", "Bytes of the model's file that experts were read from.", []string{"model_name"}, nil)
	expertsHeld  = prometheus.NewDesc("lutra_experts_in_memory", "Experts in memory, of all layers.", []string{"model_name"}, nil)
	expertsRoom  = prometheus.NewDesc("lutra_experts_memory_bytes", "Memory that the experts fit into.", []string{"model_name"}, nil)
)

// Describe implements prometheus.Collector.
func (expertCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{expertHits, expertMisses, expertRead, expertsHeld, expertsRoom} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c expertCollector) Collect(ch chan<- prometheus.Metric) {
	for h := range c.hosts {
		st, ok := h.Bundle.Experts()
		if !ok {
			continue
		}
		report := func(d *prometheus.Desc, kind prometheus.ValueType, n int64) {
			ch <- prometheus.MustNewConstMetric(d, kind, float64(n), h.Bundle.Name)
		}
		report(expertHits, prometheus.CounterValue, st.Hits)
		report(expertMisses, prometheus.CounterValue, st.Misses)
		report(expertRead, prometheus.CounterValue, st.Read)
		report(expertsHeld, prometheus.GaugeValue, st.Held)
		report(expertsRoom, prometheus.GaugeValue, st.Bytes)
	}
}
