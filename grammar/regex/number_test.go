package regex

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
)

// rat reads a number, nil of an empty text.
func rat(text string) *big.Rat {
	if text == "" {
		return nil
	}
	r, _ := new(big.Rat).SetString(text)
	return r
}

// numberTexts are numbers that JSON writes without exponents.
func numberTexts() []string {
	texts := []string{"", "-", "0", "-0", "00", "01", "1.", ".5", "--1", "1.2.3", "1e5", "x", "123456789012", "-99999999", "0.000001", "5.000000000000000000000001"}
	for i := -130; i < 130; i++ {
		texts = append(texts, fmt.Sprint(i), fmt.Sprintf("%d.5", i), fmt.Sprintf("%d.25", i), fmt.Sprintf("%d.00", i))
	}
	return texts
}

func TestANumberIsMatchedExactlyIfItLiesWithinBoundsAndMultiplesAreRight(t *testing.T) {
	written := newMatcherOf(t, `-?(0|[1-9]\d*)(\.\d+)?`)
	integer := newMatcherOf(t, `-?(0|[1-9]\d*)`)
	for _, c := range []struct {
		least, most, multiple string
		others                []string
		integer               bool
	}{
		{}, {integer: true}, {least: "0"}, {most: "0"}, {least: "-7", most: "12", integer: true}, {least: "0.1", most: "99.26"}, {least: "-0.5", most: "0.25"},
		{multiple: "7"}, {multiple: "7", integer: true}, {multiple: "0.25"}, {multiple: "2.5", integer: true}, {least: "20", most: "101", multiple: "25"},
		{least: "-101", most: "-20", multiple: "12.5"}, {others: []string{"1"}}, {others: []string{"3", "5"}, integer: true}, {multiple: "0.5", others: []string{"1"}, least: "-3"},
		{least: "5", most: "5"}, {least: "5.1", most: "5.2", integer: true}, {least: "99", most: "101", integer: true, multiple: "100"}, {most: "-1000000"},
		{multiple: "6", others: []string{"4"}, integer: true},
	} {
		a := New()
		n := Numbers{Least: rat(c.least), Most: rat(c.most), Multiple: rat(c.multiple), Integer: c.integer}
		for _, other := range c.others {
			n.Others = append(n.Others, rat(other))
		}
		e, err := a.Number(n)
		if err != nil {
			t.Fatal(err)
		}
		a.Freeze()
		for _, text := range numberTexts() {
			want := written(text) && (!c.integer || integer(text))
			if x := rat(text); want {
				want = (n.Least == nil || x.Cmp(n.Least) >= 0) && (n.Most == nil || x.Cmp(n.Most) <= 0) &&
					(n.Multiple == nil || new(big.Rat).Quo(x, n.Multiple).IsInt())
				for _, other := range n.Others {
					want = want && !new(big.Rat).Quo(x, other).IsInt()
				}
				if len(c.others) > 0 && c.multiple == "" && len(text) > 20 { // more digits than are written
					want = false
				}
			}
			if got := matches(a, e, text); got != want {
				t.Errorf("%+v: %q is matched: %v, want %v", c, text, got, want)
			}
		}
	}
}

// newMatcherOf tells whether a pattern matches whole texts.
func newMatcherOf(t *testing.T, pattern string) func(string) bool {
	t.Helper()
	a := New()
	e, err := a.Match(pattern, Raw)
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) bool { return a.Matches(e, text) }
}

func TestNoNumberComesToADeadEnd(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []Numbers{
		{Multiple: rat("2500"), Least: rat("10000"), Most: rat("1000000"), Integer: true}, {Multiple: rat("3600")}, {Multiple: rat("65536"), Integer: true},
		{Multiple: rat("86400"), Integer: true}, {Multiple: rat("86400"), Least: rat("1"), Most: rat("200000")}, {Multiple: rat("1.23450679")},
		{Multiple: rat("9007199254740993"), Integer: true}, {Least: rat("0.123456789"), Most: rat("0.12345678901")},
		{Least: rat("999999"), Most: rat("1000001"), Others: []*big.Rat{rat("1")}}, {Multiple: rat("65536"), Others: []*big.Rat{rat("3"), rat("7")}, Integer: true},
	} {
		a := New()
		start, err := a.Number(n)
		if err != nil {
			if n.Multiple.Cmp(rat("9007199254740993")) != 0 {
				t.Errorf("%+v: %v", n, err)
			}
			continue
		}
		a.Freeze()
		for range sweep.Cases(50, 200) {
			e, text := start, ""
			for range 60 {
				var may []byte
				for _, b := range []byte("-.0123456789") {
					if a.Next(e, int(a.classOf[b])) != None {
						may = append(may, b)
					}
				}
				if len(may) == 0 {
					break
				}
				b := may[r.IntN(len(may))]
				e, text = a.Next(e, int(a.classOf[b])), text+string(b)
			}
			if !a.Nullable(e) {
				t.Fatalf("%+v: nothing may follow %q", n, text)
			}
		}
		if len(a.terms) > 1<<16 {
			t.Errorf("%+v: %d expressions", n, len(a.terms))
		}
	}
}

func TestMultiplesKeepToDigitsThatEveryReaderTellsApart(t *testing.T) {
	a := New()
	e, err := a.Number(Numbers{Multiple: rat("7"), Integer: true})
	if err != nil {
		t.Fatal(err)
	}
	a.Freeze()
	for text, want := range map[string]bool{"700000000000000": true, "7000000000000000": false} {
		if got := matches(a, e, text); got != want {
			t.Errorf("%s is matched: %v, want %v", text, got, want)
		}
	}
}
