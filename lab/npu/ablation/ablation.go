// Package ablation counts the packets of this project's kernels and of those that the
// papers compare theirs with. Its program runs under qemu-hexagon. The numbers of its
// last run are recorded, so that no tool is needed to read them; a test holds them
// against the program.
//
// Where a chip has an HVX float instruction, which no emulator executes, the program has
// an integer instruction instead: it counts what a chip executes.
package ablation

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lutra-lm/lutra/hexagon/dsp"
)

//go:embed counts.txt
var recorded string

// Count holds the cost of one kernel.
type Count struct {
	Name         string  `json:"name"`
	Units        float64 `json:"units"` // of work: blocks, lines, super-groups ...
	Packets      float64 `json:"packets"`
	Instructions float64 `json:"instructions"`
	Vector       float64 `json:"vector"` // instructions of HVX
}

// Each returns the packets for a unit.
func (c Count) Each() float64 { return c.Packets / c.Units }

// Counts are kernels by name.
type Counts map[string]Count

// Each returns the packets of a kernel for a unit. A name that is not there panics: names
// are written in code.
func (c Counts) Each(name string) float64 {
	k, ok := c[name]
	if !ok {
		panic("ablation: no kernel " + name)
	}
	return k.Each()
}

// Recorded returns the counts of the last run that was kept.
func Recorded() Counts {
	c, err := parse([]byte(recorded))
	if err != nil {
		panic(err) // part of the program
	}
	return c
}

// emulator returns the command that runs the program, with its flags, from the environment's
// LUTRA_QEMU_HEXAGON.
func emulator() []string {
	if words := strings.Fields(os.Getenv("LUTRA_QEMU_HEXAGON")); len(words) > 0 {
		return words
	}
	return []string{"qemu-hexagon", "-cpu", "v67"}
}

// Run runs the program under the emulator and returns its counts and what it printed. A
// kernel that computes something wrong is an error.
func Run(ctx context.Context) (Counts, []byte, error) {
	command := emulator()
	dir, err := os.MkdirTemp("", "lutra-ablation")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "program")
	if err := os.WriteFile(path, dsp.Ablation, 0o700); err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, command[0], append(command[1:], path)...)
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("ablation: %s (Debian's package qemu-user has qemu-hexagon): %w\n%.500s", command[0], err, problem.String())
	}
	c, err := parse(out)
	return c, out, err
}

func parse(text []byte) (Counts, error) {
	counts := Counts{}
	for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); {
		var c Count
		var wrong int
		if n, _ := fmt.Sscanf(in.Text(), "check %s %d", &c.Name, &wrong); n == 2 {
			if wrong != 0 {
				return nil, fmt.Errorf("ablation: %s computes %d numbers wrongly", c.Name, wrong)
			}
			continue
		}
		if n, err := fmt.Sscan(in.Text(), &c.Name, &c.Units, &c.Packets, &c.Instructions, &c.Vector); n != 5 || c.Units < 1 {
			return nil, fmt.Errorf("ablation: line %.60q: %w", in.Text(), err)
		}
		counts[c.Name] = c
	}
	return counts, nil
}
