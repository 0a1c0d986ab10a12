package main

import (
	"bytes"
	"os"
	"testing"
)

func TestWhatIsGeneratedIsWhatTheTableSays(t *testing.T) {
	for file, want := range made("..", os.ReadFile) {
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not of this table (%v): go generate ./hexagon/device", file, err)
		}
	}
}
