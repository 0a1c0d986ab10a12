package engines

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lutra-lm/lutra/kernels/meter"
)

// kernelCollector reads a pool's Meter at each scrape.
type kernelCollector struct{ meter *meter.Meter }

var (
	kernelSeconds = prometheus.NewDesc("lutra_kernel_seconds_total", "Time the engines spent in each kind of kernel; zero unless kernel_times is on.", []string{"kernel"}, nil)
	kernelMACs    = prometheus.NewDesc("lutra_kernel_macs_total", "Multiply-accumulates of products, by whether their tile's lane carried a token; zero unless kernel_times is on.", []string{"kernel", "lane"}, nil)
	kernelCalls   = prometheus.NewDesc("lutra_kernel_calls_total", "Times the engines ran each kind of kernel; zero unless kernel_times is on.", []string{"kernel"}, nil)
)

// Describe implements prometheus.Collector.
func (kernelCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- kernelSeconds
	ch <- kernelMACs
	ch <- kernelCalls
}

// Collect implements prometheus.Collector.
func (c kernelCollector) Collect(ch chan<- prometheus.Metric) {
	for _, cost := range c.meter.Costs() {
		kernel := cost.Kind.String()
		ch <- prometheus.MustNewConstMetric(kernelSeconds, prometheus.CounterValue, cost.Time.Seconds(), kernel)
		ch <- prometheus.MustNewConstMetric(kernelCalls, prometheus.CounterValue, float64(cost.Calls), kernel)
		ch <- prometheus.MustNewConstMetric(kernelMACs, prometheus.CounterValue, float64(cost.MACs), kernel, "filled")
		ch <- prometheus.MustNewConstMetric(kernelMACs, prometheus.CounterValue, float64(cost.Idle), kernel, "idle")
	}
}
