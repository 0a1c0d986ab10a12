package engines

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/tts/structure"
)

func TestMetricsOfFormatsAreTheCachesAndDocumented(t *testing.T) {
	docs, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	cache := structure.NewCache(structure.DefaultCacheOptions())
	_, _ = cache.Format(t.Context(), structure.Key{}, func(context.Context, *budget.Budget) (*structure.Format, error) {
		return nil, errors.New("refused")
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(formatCollector{cache})
	families, err := registry.Gather()
	if err != nil || len(families) != 7 {
		t.Fatalf("%d metrics, %v, want 7", len(families), err)
	}
	for _, f := range families {
		name, m := f.GetName(), f.GetMetric()[0]
		if !strings.Contains(string(docs), "`"+name+"`") {
			t.Errorf("docs/metrics.md does not name %s", name)
		}
		want := 0.0
		if strings.Contains(name, "misses") || strings.Contains(name, "refused") {
			want = 1
		}
		if got := m.GetCounter().GetValue() + m.GetGauge().GetValue(); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
}
