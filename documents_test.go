package main

import (
	"os"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/internal/manual"
)

func TestTheBinaryHoldsAllDocuments(t *testing.T) {
	held, err := manual.Build(documents)
	if err != nil {
		t.Fatalf("main.go embeds too little: %v", err)
	}
	all, err := manual.Build(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(held.Paths(), all.Paths()) {
		t.Errorf("of what main.go embeds the site is\n%q, want\n%q", held.Paths(), all.Paths())
	}
}
