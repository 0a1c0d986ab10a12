package engines

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lutra-lm/lutra/hexagon"
)

// deviceCollector reads at each scrape what the devices of models have done.
type deviceCollector struct{ hosts hostSeq }

var (
	devicePackets  = prometheus.NewDesc("lutra_device_packets_total", "Operations given to the model's device.", []string{"model_name"}, nil)
	deviceRows     = prometheus.NewDesc("lutra_device_rows_total", "Rows multiplied with a matrix, by path; query heads, as attention.", []string{"model_name", "path"}, nil)
	deviceLanes    = prometheus.NewDesc("lutra_device_lanes_total", "Lanes of the tiles that rows began, by path.", []string{"model_name", "path"}, nil)
	deviceLaunches = prometheus.NewDesc("lutra_device_launches_total", "Graphs of experts given to the model's device.", []string{"model_name"}, nil)
	deviceExperts  = prometheus.NewDesc("lutra_device_expert_rows_total", "Rows at the experts they chose, by what became of them.", []string{"model_name", "fate"}, nil)
	deviceFailed   = prometheus.NewDesc("lutra_device_failed", "1 once the model's device has failed, else 0.", []string{"model_name"}, nil)
)

// Describe implements prometheus.Collector.
func (deviceCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{devicePackets, deviceRows, deviceLanes, deviceLaunches, deviceExperts, deviceFailed} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c deviceCollector) Collect(ch chan<- prometheus.Metric) {
	for h := range c.hosts {
		b, ok := h.Bundle.Backend().(*hexagon.Backend)
		if !ok {
			continue
		}
		count := func(d *prometheus.Desc, n int64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{h.Bundle.Name}, labels...)...)
		}
		w, failed := b.Work(), 0.0
		count(devicePackets, w.Packets)
		count(deviceRows, w.Lookups, "lookup")
		count(deviceRows, w.Tiled, "tiles")
		count(deviceRows, w.Queries, "attention")
		count(deviceLanes, w.Lanes, "tiles")
		count(deviceLanes, w.Places, "attention")
		if h.Bundle.Model.Config().Experts > 0 {
			c := b.Counts()
			count(deviceLaunches, c.Launches)
			for fate, n := range map[string]int64{"device": c.Computed, "overflow": c.Overflow, "cpu": c.Cold, "padding": c.Padded, "decode": c.Decoded} {
				count(deviceExperts, n, fate)
			}
		}
		if b.Err() != nil {
			failed = 1
		}
		ch <- prometheus.MustNewConstMetric(deviceFailed, prometheus.GaugeValue, failed, h.Bundle.Name)
	}
}
