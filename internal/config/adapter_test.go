package config

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestLoraNamesAdaptersOfTheFirstModel(t *testing.T) {
	const file = "../../models/testdata/lora/llama-all.gguf"
	load := func(args ...string) (Config, error) {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		set.StringArray("model", nil, "")
		set.StringArray("lora", nil, "")
		if err := set.Parse(args); err != nil {
			t.Fatal(err)
		}
		return Load("", nil, set)
	}
	cfg, err := load("--lora", "sql="+file+":0.5", "--lora", "../../models/testdata/lora/llama-some", "--model", "lutra-tiny-s")
	if err != nil {
		t.Fatal(err)
	}
	a := cfg.Models[0].Adapters
	if len(a) != 2 || a[0].APIName() != "sql" || a[0].Path != file || a[0].Factor() != 0.5 || a[1].APIName() != "llama-some" || a[1].Factor() != 1 {
		t.Errorf("adapters %+v", a)
	}
	for arg, want := range map[string]string{
		"sql=nowhere.gguf":       "--lora: there is no file nowhere.gguf",
		"sql=" + file + ":0":     "a scale of 0 is no adapter",
		"sql=" + file + ":1e9":   "scale: 1e+09 is outside",
		"sql=" + file + ":NaN":   "scale: NaN is outside",
		"s:q=" + file:            "has a colon or a plus",
		"lutra-tiny-s=" + file:   `two models are named "lutra-tiny-s"`,
		"sql=../../models/gguf/": "is a directory",
	} {
		if _, err := load("--lora", arg, "--model", "lutra-tiny-s"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--lora %s: %v, want %q", arg, err, want)
		}
	}
}
