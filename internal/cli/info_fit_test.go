package cli

import (
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/config"
)

func TestWhatFitsIsCountedInBytes(t *testing.T) {
	m := config.Model{Embedded: "lutra-tiny-l"}
	measure := func(a fitFlags, free int64) *fitted {
		t.Helper()
		got, err := a.measure("x", m, 0, free)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	one := measure(fitFlags{kv: "f16", streams: 1}, 1<<40)
	if one.Context != 1024 || !one.Fits || one.MostContext != 1024 || one.Weights == 0 || one.KV == 0 || one.Total != one.Weights+one.KV+one.States+one.Buffers {
		t.Errorf("with a terabyte %+v", one)
	}
	for name, c := range map[string]struct {
		a           fitFlags
		free        int64
		fits        bool
		ctx, stream int
	}{
		"exactly":          {fitFlags{kv: "f16", streams: 1}, one.Total, true, 1024, 1},
		"a byte less":      {fitFlags{kv: "f16", streams: 1}, one.Total - 1, false, 1024 - 32, 0},
		"three more":       {fitFlags{kv: "f16", streams: 2}, one.Total + 3*one.KV, true, 1024, 4},
		"half a context":   {fitFlags{kv: "f16", streams: 1, context: 512}, one.Total, true, 1024, 2},
		"no room for any":  {fitFlags{kv: "f16", streams: 1}, one.Weights, false, 0, 0},
		"int8 takes less":  {fitFlags{kv: "int8", streams: 1}, one.Total - 1, true, 1024, 1},
		"int4 takes less":  {fitFlags{kv: "int4", streams: 1}, one.Total - one.KV/4, true, 1024, 1},
		"not even weights": {fitFlags{kv: "f16", streams: 3}, 1, false, 0, 0},
	} {
		got := measure(c.a, c.free)
		if got.Fits != c.fits || got.MostContext != c.ctx || got.MostStreams != c.stream {
			t.Errorf("%s: %+v, want fits %v, %d tokens, %d streams", name, got, c.fits, c.ctx, c.stream)
		}
	}
	for flag, a := range map[string]fitFlags{"--context": {kv: "f16", streams: 1, context: 1025}, "--streams": {kv: "f16"}} {
		if _, err := a.measure("x", m, 0, 1); err == nil || !strings.HasPrefix(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if _, err := (&fitFlags{kv: "f16", streams: 1}).measure("x", config.Model{Path: "info.go"}, 0, 1); err == nil || !strings.Contains(err.Error(), "not a GGUF file") {
		t.Errorf("a file that is no model: %v", err)
	}
}
