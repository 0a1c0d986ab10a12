package search

import "testing"

func TestSentencesEndWithPointsThatAreNotOfNumbers(t *testing.T) {
	for text, want := range map[string]bool{
		"It is so.": true, "Is it?": true, "Ja!": true, "él está allí.": true, "así é.": true,
		"It is 3.": false, "so": false, ".": false, "": false, "so. ": false, "(so).": false,
	} {
		if got := endsSentence([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestTextIsInAFenceUntilItIsClosed(t *testing.T) {
	for text, want := range map[string]bool{"": false, "a\n```go\nx := 1": true, "a\n```go\nx\n```\n": false, "``": false, "```\na\n```\nb\n```": true} {
		if got := inFence([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
