package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestACommandThatMovedSaysInALineWhereItIs(t *testing.T) {
	for line, want := range map[string]string{
		"bench kernels --chosen": "lutra bench: is in the program lutra-lab, beside this one in a release: lutra-lab bench kernels --chosen\n",
		"npu plan --json":        "lutra npu plan: is in the program lutra-lab, beside this one in a release: lutra-lab npu plan --json\n",
	} {
		if status, got := complain(t, strings.Fields(line)...); status != 2 || got != want {
			t.Errorf("lutra %s: status %d, %s", line, status, got)
		}
	}
	help := mustLutra(t, "--help")
	offered, _ := completes(t, "")
	for _, name := range movedCommands {
		if strings.Contains(help, "\n  "+name+" ") || slices.Contains(offered, name) {
			t.Errorf("help or a shell offers %s", name)
		}
	}
}
