package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/usage"
)

func TestFaultsOfFlagsAreOfUsageAndNameTheFlag(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--threads", "-1"}, "--threads: -1 is outside 0.."},
		{[]string{"--kv-type", "f8"}, `--kv-type: "f8" is none of f16, int8`},
		{[]string{"--kv-mem", "lots"}, `--kv-mem: "lots" is not a size`},
		{[]string{"--speculation", "much"}, `--speculation: "much" is none of auto, off and the numbers to 15`},
		{[]string{"--log", "loud"}, `--log: "loud" is none of`},
		{[]string{"--model", "lutra-tiny-s", "--model", "lutra-tiny-s"}, `--model: two models are named "lutra-tiny-s"`},
		{[]string{"--model", "lutra-tinys"}, "--model: there is no file lutra-tinys; embedded models: lutra-tiny-l, lutra-tiny-s, lutra-tiny-moe, lutra-tiny-prm; did you mean lutra-tiny-s?"},
	} {
		var m ModelFlags
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		m.Register(set)
		if err := set.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load("", nil, set)
		var mistake usage.Error
		if !errors.As(err, &mistake) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: error %v, want one of usage: %s", c.args, err, c.want)
		}
	}
}

func TestEveryCommandRefusesMoreThreadsThanAMachineCanUse(t *testing.T) {
	for _, args := range [][]string{
		{"serve"}, {"ask", "Hi"}, {"chat"},
	} {
		for _, n := range []string{"1000000", "-1"} {
			if _, err := lutra(t, append(args, "--threads", n)...); err == nil || !strings.Contains(err.Error(), "threads: "+n+" is outside 0..") {
				t.Errorf("%v --threads %s: error %v, want one that gives the range", args, n, err)
			}
		}
	}
}
