package engines

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lutra-lm/lutra/models/kv/offload"
)

// diskCollector reads at each scrape what prefixes in files have been of use for.
type diskCollector struct {
	hosts  hostSeq
	folder *offload.Folder // nil: there is none
}

var (
	diskBytes   = prometheus.NewDesc("lutra_kv_disk_bytes", "Bytes of files of prefixes, out of kv.disk.size, as last counted.", nil, nil)
	diskFiles   = prometheus.NewDesc("lutra_kv_disk_files", "Files of prefixes, as last counted.", nil, nil)
	diskEvicted = prometheus.NewDesc("lutra_kv_disk_evictions_total", "Files that this process has removed for their age or for want of room.", nil, nil)

	byModel     = []string{"model_name"}
	diskQueries = prometheus.NewDesc("lutra_kv_disk_queries_total", "Prompt tokens that memory did not have and files were looked for.", byModel, nil)
	diskHits    = prometheus.NewDesc("lutra_kv_disk_hits_total", "Prompt tokens that were read from files.", byModel, nil)
	diskRead    = prometheus.NewDesc("lutra_kv_disk_read_bytes_total", "Bytes of files that were read.", byModel, nil)
	diskWritten = prometheus.NewDesc("lutra_kv_disk_written_bytes_total", "Bytes of files that were written.", byModel, nil)
	diskDropped = prometheus.NewDesc("lutra_kv_disk_dropped_total", "Files that were not written, for want of room in the queue or on the disk.", byModel, nil)
	diskDamaged = prometheus.NewDesc("lutra_kv_disk_damaged_total", "Files that were not what they should be, and were removed.", byModel, nil)
	diskFailed  = prometheus.NewDesc("lutra_kv_disk_failures_total", "Reads and writes that failed.", byModel, nil)
)

// Describe implements prometheus.Collector.
func (diskCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{diskBytes, diskFiles, diskEvicted, diskQueries, diskHits, diskRead, diskWritten, diskDropped, diskDamaged, diskFailed} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c diskCollector) Collect(ch chan<- prometheus.Metric) {
	if c.folder == nil {
		return
	}
	report := func(d *prometheus.Desc, kind prometheus.ValueType, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, float64(n), labels...)
	}
	f := c.folder.Stats()
	report(diskBytes, prometheus.GaugeValue, f.Bytes)
	report(diskFiles, prometheus.GaugeValue, f.Files)
	report(diskEvicted, prometheus.CounterValue, f.Evicted)
	for h := range c.hosts {
		if h.disk == nil {
			continue
		}
		s, name := h.disk.Stats(), h.Bundle.Name
		for _, m := range []struct {
			d *prometheus.Desc
			n int64
		}{{diskQueries, s.Asked}, {diskHits, s.Found}, {diskRead, s.Read}, {diskWritten, s.Written}, {diskDropped, s.Dropped}, {diskDamaged, s.Damaged}, {diskFailed, s.Failures}} {
			report(m.d, prometheus.CounterValue, m.n, name)
		}
	}
}
