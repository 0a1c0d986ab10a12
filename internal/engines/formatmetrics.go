package engines

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lutra-lm/lutra/tts/structure"
)

// formatCollector reads at each scrape what formats take.
type formatCollector struct{ cache *structure.Cache }

var (
	formatBytes     = prometheus.NewDesc("lutra_format_cache_bytes", "Bytes of formats in use or kept, out of formats.memory.", nil, nil)
	formatCount     = prometheus.NewDesc("lutra_format_cache_formats", "Formats in use or kept.", nil, nil)
	formatsUsed     = prometheus.NewDesc("lutra_format_cache_in_use", "Formats that requests use.", nil, nil)
	formatHits      = prometheus.NewDesc("lutra_format_cache_hits_total", "Requests whose format was there or being compiled.", nil, nil)
	formatMisses    = prometheus.NewDesc("lutra_format_cache_misses_total", "Requests whose format had to be compiled.", nil, nil)
	formatEvictions = prometheus.NewDesc("lutra_format_cache_evictions_total", "Formats that gave way to others.", nil, nil)
	formatRefused   = prometheus.NewDesc("lutra_format_cache_refused_total", "Formats that were refused, or for which there was no memory.", nil, nil)
)

// Describe implements prometheus.Collector.
func (formatCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{formatBytes, formatCount, formatsUsed, formatHits, formatMisses, formatEvictions, formatRefused} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c formatCollector) Collect(ch chan<- prometheus.Metric) {
	report := func(d *prometheus.Desc, kind prometheus.ValueType, n int64) {
		ch <- prometheus.MustNewConstMetric(d, kind, float64(n))
	}
	st := c.cache.Stats()
	report(formatBytes, prometheus.GaugeValue, st.Bytes)
	report(formatCount, prometheus.GaugeValue, int64(st.Formats))
	report(formatsUsed, prometheus.GaugeValue, int64(st.Used))
	report(formatHits, prometheus.CounterValue, st.Hits)
	report(formatMisses, prometheus.CounterValue, st.Misses)
	report(formatEvictions, prometheus.CounterValue, st.Evictions)
	report(formatRefused, prometheus.CounterValue, st.Refused)
}
