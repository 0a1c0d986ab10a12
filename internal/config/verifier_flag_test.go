package config

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestVerifiersAreNamedOnTheCommandLine(t *testing.T) {
	load := func(args ...string) (Config, error) {
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		set.StringArray("model", nil, "")
		set.StringArray("verifier", nil, "")
		if err := set.Parse(args); err != nil {
			t.Fatal(err)
		}
		return Load(writeConfig(t, "verifiers: [{path: other.gguf, format: skywork-prm}]"), nil, set)
	}
	c, err := load("--model", "lutra-tiny-s", "--verifier", "rlhflow-prm-8b", "--verifier", "mine=hf:acme/PRM-GGUF")
	if err != nil || len(c.Verifiers) != 2 || c.Verifiers[0].Path != "rlhflow-prm-8b" || c.Verifiers[1].Name != "mine" || c.Verifiers[1].Format != "" {
		t.Errorf("verifiers %+v, %v", c.Verifiers, err)
	}
	c, err = load("--verifier", "lutra-tiny-prm")
	if err != nil || len(c.Verifiers) != 1 || c.Verifiers[0].Embedded != "lutra-tiny-prm" {
		t.Errorf("verifiers %+v, %v", c.Verifiers, err)
	}
	for _, name := range []string{"nothing.gguf", "hf:acme"} {
		if _, err := load("--verifier", name); err == nil || !strings.Contains(err.Error(), "--verifier: ") {
			t.Errorf("--verifier %s: %v", name, err)
		}
	}
	if c, err = load(); err != nil || c.Verifiers[0].Path != "other.gguf" {
		t.Errorf("without the flag: %+v, %v", c.Verifiers, err)
	}
}
