package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// movedCommands are of the program lutra-lab.
var movedCommands = []string{"bench", "convert", "docs", "eval", "imatrix", "logits", "perplexity", "probe", "quantize", "schema"}

// movedNPU are subcommands of npu that are of the program lutra-lab.
var movedNPU = []string{"ablate", "calibrate", "doctor", "papers", "placements", "plan", "requests"}

// newMoved makes a command that only says where it went. Help and shells do not list it.
func newMoved(path string) *cobra.Command {
	return &cobra.Command{
		Use:                path[strings.LastIndexByte(path, ' ')+1:],
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			line := strings.Join(append([]string{"lutra-lab", path}, args...), " ")
			return exitStatus{2, fmt.Errorf("is in the program lutra-lab, beside this one in a release: %s", line)}
		},
	}
}
