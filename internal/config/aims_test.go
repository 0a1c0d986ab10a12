package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lutra-lm/lutra/models/embedded"
)

func TestTheServerLearnsFromWhatSearchesAreChosen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profile.json")
	if err := os.WriteFile(file, embedded.Profile(), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(writeConfig(t, "search: {profiles: ["+file+"], alternates: [a, b]}\nserver: {default_scaling: \"quality=0.9;deadline_ms=800\", presets: {good: q97}}\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &c.Server
	if len(s.Profiles) != 1 || !s.Profiles[0].Has("lutra-tiny-l") || len(s.Alternates) != 2 {
		t.Errorf("the server has %v, %v", s.Profiles, s.Alternates)
	}
}
