package config

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/internal/settings"
)

func TestKeysMayStillBeSetByTheirFormerNames(t *testing.T) {
	path := writeConfig(t, "engine:\n  hand_over: 9ms\n  prompt_stretch: 3\n")
	c, err := Load(path, []string{"LUTRA_ENGINE_SEARCH_STRETCH=4"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Engine.FlushInterval != 9*time.Millisecond || c.Engine.PrefillSlowdown != 3 || c.Engine.BackgroundSlowdown != 4 {
		t.Errorf("former names give %+v", c.Engine.Options)
	}
	var out bytes.Buffer
	c.Warn(zerolog.New(&out))
	for _, want := range []string{
		path + ":2: engine.hand_over is called engine.flush_interval now", path + ":3: engine.prompt_stretch is called engine.prefill_slowdown now",
		"LUTRA_ENGINE_SEARCH_STRETCH: engine.search_stretch is called engine.background_slowdown now",
	} {
		if !strings.Contains(out.String(), want) || strings.Count(out.String(), `"level":"warn"`) != 3 {
			t.Errorf("the log says\n%swant three warnings, among them %q", out.String(), want)
		}
	}
}

func TestAKeyThatIsGoneIsNoFault(t *testing.T) {
	path := writeConfig(t, "hexagon:\n  overflow: host\n")
	c, err := Load(path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c.Warn(zerolog.New(&out))
	if want := path + ":2: hexagon.overflow has no effect: the host computes"; !strings.Contains(out.String(), want) {
		t.Errorf("the log says %s, want %q in it", out.String(), want)
	}
}

func TestAKeyIsSetByOneOfItsNames(t *testing.T) {
	for text, want := range map[string]string{
		"engine: {hand_over: 1ms, flush_interval: 1ms}":   "engine.flush_interval: is set in ",
		"engine:\n  flush_interval: 1ms\n  hand_over: 1s": ":3: engine.hand_over: is set in ",
		"engine: {hand_over: 7s}":                         "engine.flush_interval: 7s is outside 0s..1s",
	} {
		if _, err := Load(writeConfig(t, text), nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	twice := []string{"LUTRA_ENGINE_HAND_OVER=1ms", "LUTRA_ENGINE_FLUSH_INTERVAL=1ms"}
	if _, err := Load("", twice, nil); err == nil || !strings.Contains(err.Error(), "LUTRA_ENGINE_FLUSH_INTERVAL: is set by LUTRA_ENGINE_HAND_OVER already") {
		t.Errorf("both names in the environment: error %v", err)
	}
}

func TestFormerNamesLeadToKeys(t *testing.T) {
	c := Default()
	keys := settings.Keys(&c)
	for former, now := range formerNames.Former {
		if _, is := keys[former]; is {
			t.Errorf("%s is a key", former)
		}
		if _, is := keys[now]; !is {
			t.Errorf("%s, once %s, is no key", now, former)
		}
	}
}
