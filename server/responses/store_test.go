package responses

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// kept makes a response that follows before and says a text.
func kept(id string, before []*item, text string) *record {
	out := newItem(itemMessage)
	out.Content = []part{newPart(itemMessage)}
	out.write(text)
	return &record{response: response{ID: id, Output: []*item{out}}, input: before}
}

func TestTheStoreCountsWhatItKeepsAndNoMore(t *testing.T) {
	s := newStore(1<<20, time.Hour)
	mine, yours := s.of("me"), s.of("you")
	text := strings.Repeat("x", 10_000)
	var before []*item
	for i := range 10 { // a conversation: items are kept once
		r := kept(fmt.Sprint(i), before, text)
		if !mine.put(r) {
			t.Fatalf("response %d is not kept", i)
		}
		before = append(before[:len(before):len(before)], r.response.Output...)
	}
	if n := s.Bytes(); n < 100_000 || n > 150_000 {
		t.Errorf("ten texts of 10 kB take %d bytes", n)
	}
	id := before[0].ID
	if _, ok := yours.item(id); ok || yours.find("0") != nil || yours.Delete("0") {
		t.Error("another owner sees them")
	}
	if !mine.Delete("0") || mine.Delete("0") || mine.find("0") != nil {
		t.Error("a response cannot be deleted once")
	}
	if _, ok := mine.item(id); !ok {
		t.Error("an item of a response that is kept has gone with another one")
	}
	for i := range 200 {
		yours.put(kept(fmt.Sprint("y", i), nil, text))
		if n := s.Bytes(); n > 1<<20 {
			t.Fatalf("it keeps %d bytes", n)
		}
	}
	if mine.find("9") != nil || yours.find("y0") != nil || yours.find("y199") == nil {
		t.Error("what was used last is not what is kept")
	}
	if yours.put(kept("large", nil, strings.Repeat("x", 1<<19))) || yours.find("large") != nil {
		t.Error("one response takes more than a quarter")
	}
	for i := range 200 {
		yours.Delete(fmt.Sprint("y", i))
	}
	if s.Bytes() != 0 || len(s.items) != 0 || len(s.refs) != 0 {
		t.Errorf("an empty store keeps %d bytes, %d and %d items", s.Bytes(), len(s.items), len(s.refs))
	}
}

func TestWhatNobodyUsesIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(1<<20, time.Hour)
		o := s.of("")
		for _, id := range []string{"used", "idle"} {
			o.put(kept(id, nil, "x"))
		}
		time.Sleep(50 * time.Minute)
		if o.find("used") == nil {
			t.Error("it goes before its time")
		}
		time.Sleep(20 * time.Minute)
		if o.find("idle") != nil || o.find("used") == nil {
			t.Error("an hour after its last use a response is kept, or another is not")
		}
		time.Sleep(2 * time.Hour)
		if n := s.Bytes(); n != 0 {
			t.Errorf("%d bytes are kept for nobody", n)
		}
	})
}

func TestTheInputOfACustomToolIsFoundHoweverItComes(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"input": "plain"}`:                      "plain",
		`{ "input" :"a \"b\" \\ \n \u00e9 é 🦦"} `: "a \"b\" \\ \n é é 🦦",
		`{"input": "\ud83e\udda6 \u0022"}`:        "🦦 \"",
		`{"input": "\ud83e half"}`:                "\ufffd half",
		`{"input": "\ud83e\" half"}`:              "\ufffd\" half",
		`{"input": ""}`:                           "",
		`{"input": "cut o`:                        "cut o",
		`{"input": "cut \u00`:                     "cut ",
		`{"input": 7}`:                            "",
		`{`:                                       "",
	} {
		for size := 1; size <= len(arguments); size++ {
			var c customInput
			got := ""
			for piece := range slices.Chunk([]rune(arguments), size) { // text comes in whole characters
				got += c.push(string(piece))
			}
			if got != want {
				t.Errorf("%s in pieces of %d: %q, want %q", arguments, size, got, want)
			}
		}
	}
}

func TestWhatClientsKeepIsReadAgain(t *testing.T) {
	for _, text := range []string{"", "a thought", "\x00 äöü 🦦"} {
		if got, ok := readOpaque(opaque(text)); got != text || !ok {
			t.Errorf("%q is read as %q, %v", text, got, ok)
		}
	}
	for _, foreign := range []string{"", "gAAAAABo", "lutra1.!!", "lutra1.===="} {
		if got, ok := readOpaque(foreign); ok {
			t.Errorf("%q is read as %q", foreign, got)
		}
	}
}
