package reference

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/tts/ttstest"
)

func TestAnInterruptedPerplexityIsThatOfThePiecesBefore(t *testing.T) {
	const n, pieces = 8, 4
	tokens := make([]int32, n*pieces)
	for i := range tokens {
		tokens[i] = int32(i % 5)
	}
	words := ttstest.Words(t)
	measure := func(tokens []int32, ends int) (Report, int, error) {
		done := 0
		report, err := Perplexity(words, tokens, n, func(piece []int32, each func(int, []float32) error) error {
			for at, id := range piece {
				if done == ends && at == n-2 { // a part of the piece has been counted
					return context.Canceled
				}
				if err := each(at, []float32{1, float32(id), 2, 0.5, float32(at)}); err != nil {
					return err
				}
			}
			return nil
		}, func() { done++ })
		return report, done, err
	}
	for ends := range pieces {
		got, done, err := measure(tokens, ends)
		if !errors.Is(err, context.Canceled) || done != ends {
			t.Fatalf("%d pieces of %d are done: %v", done, ends, err)
		}
		want := Report{}
		if ends > 0 {
			if want, _, err = measure(slices.Clone(tokens[:ends*n]), pieces); err != nil {
				t.Fatal(err)
			}
		}
		if got != want {
			t.Errorf("after %d pieces: %+v, want %+v", ends, got, want)
		}
	}
}
