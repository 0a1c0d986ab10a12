package engines

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
)

func TestMetricsOfExpertsAreThoseOfModelsThatReadThem(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	for _, c := range []struct {
		memory int64
		want   int
	}{{0, 0}, {20 << 10, 5}} {
		b, err := models.Load("../../models/testdata/transformers/mixtral.gguf", models.LoadOptions{Pool: p, ExpertMemory: c.memory})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		registry := prometheus.NewRegistry()
		registry.MustRegister(expertCollector{slices.Values([]*Host{{Bundle: b}})})
		families, err := registry.Gather()
		if err != nil || len(families) != c.want {
			t.Errorf("memory of %d: %d metrics, %v, want %d", c.memory, len(families), err, c.want)
		}
		for _, f := range families {
			if !strings.HasPrefix(f.GetName(), "lutra_expert") || f.GetMetric()[0].GetLabel()[0].GetValue() != "mixtral" {
				t.Errorf("metric %v", f)
			}
		}
	}
}
