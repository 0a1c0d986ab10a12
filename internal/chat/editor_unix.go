//go:build unix

package chat

import (
	"os"

	"github.com/peterh/liner"
)

// newEditor makes a line editor that reads the terminal's keys, where it has some.
func newEditor() (*liner.State, *keys) {
	if !liner.TerminalSupported() {
		return liner.NewLiner(), nil
	}
	r, w, err := os.Pipe()
	if err != nil { // the editor does without
		return liner.NewLiner(), nil
	}
	terminal := os.Stdin
	os.Stdin = r // the editor reads here; modes belong to descriptor 0
	defer func() { os.Stdin = terminal }()
	return liner.NewLiner(), newKeys(terminal, w, os.Stdout)
}
