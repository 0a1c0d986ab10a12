package cli

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestAPackingIsChosenByFlagAndByConfiguration(t *testing.T) {
	for packing, want := range map[string]string{"stored": "stored", "": "", "i1": "i1"} {
		f := pflag.NewFlagSet("test", pflag.ContinueOnError)
		var m ModelFlags
		m.Register(f)
		args := []string{"--model", "lutra-tiny-s"}
		if packing != "" {
			args = append(args, "--packing", packing)
		}
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		c, err := m.load(f)
		if err != nil || len(c.Models) != 1 || c.Models[0].Packing != want {
			t.Errorf("with --packing %q: %+v, %v", packing, c.Models, err)
		}
	}
}
