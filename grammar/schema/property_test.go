package schema

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/grammartest"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// closing are bytes of tokens that lead to the end of a JSON text.
const closing = `]}"0`

// vocabularies are of bytes, of the embedded models, and one that is hostile to a schema.
func vocabularies(r *rand.Rand, text string) []grammartest.Vocabulary {
	return []grammartest.Vocabulary{grammartest.Bytes(), grammartest.Embedded(), grammartest.Hostile(r, text)}
}

// walks checks that the validator takes random texts of g, of each vocabulary so many. It
// counts those that come to an end.
func walks(t *testing.T, text string, g *grammar.Grammar, r *rand.Rand, all []grammartest.Vocabulary, times int) (ends int) {
	t.Helper()
	valid := validator(t, text)
	for _, v := range all {
		for range times {
			out, ended, err := grammartest.Walk(g, v, r, 5+r.IntN(40), closing)
			if err == nil && ended {
				ends++
				err = valid(out)
			}
			if err != nil {
				t.Errorf("%s: %.300q: %v", text, out, err)
				break
			}
		}
	}
	return ends
}

// inAnOrder is v as g accepts it: its properties stand in one of many orders. It is the last
// that has been tried if g accepts none.
func inAnOrder(t *testing.T, g *grammar.Grammar, v *value, r *rand.Rand) (text string, accepted bool) {
	t.Helper()
	for range 500 {
		text = v.write(choice(r, styles(r)))
		if accepted = grammartest.Reads(t, g, text); accepted || v.kind&(arrays|objects) == 0 {
			break
		}
	}
	return text, accepted
}

// mutated changes some bytes of a text.
func mutated(r *rand.Rand, text string) string {
	b := []byte(text)
	for range 1 + r.IntN(2) {
		at := r.IntN(len(b) + 1)
		put := []byte{choice(r, []byte("{}[],:\"\\0123-.eE+ab \n\xc3\xa9nulltrue"))}
		b = append(b[:at:at], append(put[:r.IntN(2)], b[min(len(b), at+r.IntN(2)):]...)...)
	}
	return string(b)
}

// A schema's grammar accepts an instance if and only if another validator takes it, however it is cut into tokens.
// That validator takes whatever is written under the grammar's masks.
func TestADrawnSchemaDescribesWhatAnotherValidatorTakes(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	d := &drawing{Rand: r}
	used := map[string]int{}
	drawn := sweep.Of(t, 250, 1000)
	compiled, empty, ends, taken, narrowed := 0, 0, 0, 0, 0
	for range drawn {
		text := d.whole()
		valid := validator(t, text)
		var values []*value
		for range 40 {
			values = append(values, d.value(2))
		}
		g, err := Compile([]byte(text), Options{AnyOrder: r.IntN(2) == 0})
		if err != nil && !strings.HasSuffix(err.Error(), errNothing.Error()) {
			continue // it is too much for a grammar, as documented
		}
		if err != nil {
			empty++
			for _, v := range values {
				if out := v.write(style{}); valid(out) == nil {
					t.Errorf("%s: %v, and %s does", text, err, out)
				}
			}
			continue
		}
		compiled++
		for k := range d.keywords {
			used[k]++
		}
		all := vocabularies(r, text)
		ends += walks(t, text, g, r, all, 1)
		v := choice(r, all)
		for i, instance := range values {
			out := instance.write(style{Rand: r})
			if valid(out) != nil {
				if grammartest.Reads(t, g, out) {
					t.Errorf("%s: %s is accepted, and not valid", text, out)
				}
				continue
			}
			taken++
			out, accepted := inAnOrder(t, g, instance, r)
			switch {
			case accepted && i%8 == 0:
				if err := grammartest.Accepts(g, v, r, out, 1); err != nil {
					t.Errorf("%s: %s: %v", text, out, err)
				}
			case !accepted && (d.keywords["minProperties"] || d.keywords["maxProperties"]):
				narrowed++ // names that count are told apart by the lots that they draw, which may be the same
			case !accepted:
				t.Errorf("%s: %s is valid, and not accepted", text, out)
			}
			if out = mutated(r, out); grammartest.Reads(t, g, out) {
				if err := valid(out); err != nil {
					t.Errorf("%s: %s is accepted, and not valid: %v", text, out, err)
				}
			}
		}
	}
	t.Logf("%d schemas compiled, no value meets %d; %d instances are valid, %d of them refused", compiled, empty, taken, narrowed)
	if compiled+empty < drawn*9/10 || compiled < drawn*3/4 {
		t.Errorf("of %d schemas, %d are compiled and %d met by no value", drawn, compiled, empty)
	}
	if ends < 3*compiled*9/10 {
		t.Errorf("of %d random texts, %d come to an end", 3*compiled, ends)
	}
	if taken < 10*compiled || narrowed > taken/500 {
		t.Errorf("of %d valid instances, %d are refused", taken, narrowed)
	}
	for name := range keywords {
		if used[name] < 4 && !slices.Contains(refused, name) {
			t.Errorf("%s is in %d schemas alone", name, used[name])
		}
	}
}

func TestOneOfManyThatUseAGrammarAtOnceWritesWhatItWritesAlone(t *testing.T) {
	for _, text := range []string{schemas[0], Any, `{"type": "array", "uniqueItems": true, "items": {"type": ["string", "number"]}}`} {
		shared, err := Compile([]byte(text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		write := func(g *grammar.Grammar, seed uint64) string {
			r := rand.New(rand.NewPCG(seed, seed))
			out, _, err := grammartest.Walk(g, grammartest.Hostile(r, text), r, 20, closing)
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			return out
		}
		var wg sync.WaitGroup
		for seed := range uint64(6) {
			wg.Go(func() {
				alone, err := Compile([]byte(text), Options{})
				if err != nil {
					t.Error(err)
				} else if got, want := write(shared, seed), write(alone, seed); got != want {
					t.Errorf("%s: %q with others, %q alone", text, got, want)
				}
			})
		}
		wg.Wait()
	}
}
