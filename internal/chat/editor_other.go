//go:build !unix

package chat

import "github.com/peterh/liner"

// newEditor makes a line editor.
func newEditor() (*liner.State, *keys) { return liner.NewLiner(), nil }
