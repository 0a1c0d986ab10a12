package config

import (
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/tts/structure"
)

func TestTheMemoryOfFormatsIsCheckedByItsKeys(t *testing.T) {
	for _, c := range []struct{ memory, largest, fault string }{
		{"256MiB", "64MiB", ""},
		{"128MiB", "96MiB", ""},
		{"128MiB", "97MiB", "formats.largest: 97.0 MiB is more than three quarters"},
		{"much", "64MiB", `formats.memory: "much" is not a size`},
		{"auto", "64MiB", `formats.memory: "auto" is not a size`},
		{"256MiB", "1KiB", "formats.largest: \"1KiB\" is outside"},
	} {
		cfg := Default()
		cfg.Formats = Formats{c.memory, c.largest}
		err := cfg.Validate()
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s, %s: %v, want %q", c.memory, c.largest, err, c.fault)
		}
	}
	if o, err := Default().Formats.Options(); err != nil || o != structure.DefaultCacheOptions() {
		t.Errorf("the defaults are %+v, %v, want %+v", o, err, structure.DefaultCacheOptions())
	}
}
