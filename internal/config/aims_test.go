package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/tts/scaling"
)

func TestTheServerLearnsFromWhatSearchesAreChosen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profile.json")
	if err := os.WriteFile(file, embedded.Profile(), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(writeConfig(t, "search: {profiles: ["+file+"], alternates: [a, b], fill: bon4}\nserver: {default_scaling: \"quality=0.9;deadline_ms=800\", presets: {good: q97}}\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &c.Server
	if len(s.Profiles) != 1 || !s.Profiles[0].Has("lutra-tiny-l") || len(s.Alternates) != 2 || s.Fill == nil || s.Fill.Method != scaling.BestOfN || s.Fill.N != 4 {
		t.Errorf("the server has %v, %v, %v", s.Profiles, s.Alternates, s.Fill)
	}
	if Default().Server.Fill != nil {
		t.Error("plain answers are filled although nobody wants it")
	}
}
