package search_test

import (
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/tts"
	. "github.com/lutra-lm/lutra/tts/search"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// slow lets 40 ms pass at each of m's steps.
func slow(m *toy.Model) *toy.Model {
	m.Before = func(*models.Batch) error {
		time.Sleep(40 * time.Millisecond)
		return nil
	}
	return m
}

// place is where a candidate in the making stands.
type place struct{ index, parent int }

func TestCandidatesCanBeReadBeforeAnyIsComplete(t *testing.T) {
	for _, written := range []string{"sc8", "bon8", "beam8x2", "dvts8x2", "auto;n=8", "asc8", "deepconf8;deepconf.window=2", "pf8"} {
		synctest.Test(t, func(t *testing.T) {
			s := scriptedSearch(t, ttstest.RunOn(t, slow(ttstest.Thinks(t)), 256, batcher.DefaultOptions()), written)
			plain := carryOut(t, s, ttstest.Request(3, 1))
			s.Plan.Include.Partial = true
			got := carryOut(t, s, ttstest.Request(3, 1))
			if plain.Plan.Include = got.Plan.Include; !reflect.DeepEqual(plain.Tree, got.Tree) || plain.text[0] != got.text[0] || plain.Reason != got.Reason {
				t.Errorf("%s: whoever looks on changes the outcome: %q, want %q", written, got.text[0], plain.text[0])
			}

			var last time.Time
			texts, complete := map[place]string{}, map[place]tts.Partial{}
			early := false
			for e, err := range s.Run(t.Context(), ttstest.Request(3, 1)) {
				if err != nil {
					t.Fatal(err)
				}
				d := ttstest.Flatten(e)
				if d.Progress == nil || len(d.Progress.Partial) == 0 {
					continue
				}
				if now := time.Now(); now.Sub(last) < PartialInterval {
					t.Errorf("%s: a report comes %v after the one before", written, now.Sub(last))
				} else {
					last = now
				}
				early = early || d.Progress.Finished == 0 && len(texts) == 0
				for _, p := range d.Progress.Partial {
					at := place{p.Index, p.Parent}
					texts[at] += p.Text
					if p.Finish != "" {
						complete[at] = p
					}
					if p.Tokens == 0 || p.Logprob > 0 || p.Index < 0 || p.Index >= Probes+8 || p.Parent >= len(got.Tree) {
						t.Errorf("%s: %+v", written, p)
					}
				}
			}
			if !early {
				t.Errorf("%s: nothing was shown before a candidate was complete", written)
			}
			for at, text := range texts {
				steps := at.parent >= 0 || strings.HasPrefix(written, "beam") || strings.HasPrefix(written, "dvts") || strings.HasPrefix(written, "pf")
				if steps && !continues(got.Tree, at.parent, text) {
					t.Errorf("%s: candidate %d writes %q after node %d, which nothing in the tree begins with", written, at.index, text, at.parent)
				}
			}
			for _, c := range got.Candidates {
				if p, ok := complete[place{c.Index, -1}]; ok && (p.Answer != c.Answer || p.Finish != c.Finish || p.Logprob != c.Logprob || p.Judged && p.Score != c.Score || texts[place{c.Index, -1}] != c.Text) {
					t.Errorf("%s: candidate %d is shown as %+v, and is %+v", written, c.Index, p, c)
				}
			}
			if len(complete) == 0 && !strings.HasPrefix(written, "beam") && !strings.HasPrefix(written, "dvts") && !strings.HasPrefix(written, "pf") {
				t.Errorf("%s: no candidate is shown complete", written)
			}
		})
	}
}

// continues reports whether a child of parent begins with text.
func continues(tree []tts.Node, parent int, text string) bool {
	for _, n := range tree {
		if n.Parent == parent && strings.HasPrefix(n.Text, text) {
			return true
		}
	}
	return false
}

func TestAReaderThatLagsIsNotSentMoreThanItsShare(t *testing.T) {
	const line = "a line of words, ünïcode too\n"
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat(line, 60)
		m := ttstest.Says(t, ttstest.Words(t).Encode(nil, ttstest.Asked, tokenizer.Options{}), text)
		m.Before = func(*models.Batch) error {
			time.Sleep(4 * time.Millisecond)
			return nil
		}
		s := scriptedSearch(t, ttstest.RunOn(t, m, 1024, batcher.DefaultOptions()), "bon16;include=partial")
		texts := map[int]string{}
		reports := 0
		for e, err := range s.Run(t.Context(), ttstest.Request(1, 1)) {
			if err != nil {
				t.Fatal(err)
			}
			d := ttstest.Flatten(e)
			if d.Progress == nil || d.Progress.Partial == nil {
				continue
			}
			reports++
			size := 0
			for _, p := range d.Progress.Partial {
				size += len(p.Text)
				texts[p.Index] += p.Text
				if p.Finish != "" && texts[p.Index] != text {
					t.Errorf("candidate %d is reported complete with %d of its %d bytes", p.Index, len(texts[p.Index]), len(text))
				}
				if !strings.HasPrefix(text, texts[p.Index]) {
					t.Fatalf("candidate %d is shown as %q", p.Index, texts[p.Index])
				}
			}
			if size > PartialBytes {
				t.Errorf("one report holds %d bytes of text, want at most %d", size, PartialBytes)
			}
			time.Sleep(3 * time.Second) // nothing keeps the candidates from growing meanwhile
		}
		if reports < 2 || len(texts) < 16 {
			t.Errorf("%d reports of %d candidates", reports, len(texts))
		}
	})
}

func TestAReaderThatLeavesInTheMidstOfACandidateFreesBothEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ttstest.RunOn(t, slow(ttstest.Thinks(t)), 256, batcher.DefaultOptions())
		for _, written := range []string{"beam8x2;include=partial", "sc8;verifier=prm;include=partial", "auto;n=8;include=partial"} {
			s, prm := judged(t, m, written, &toy.Model{}, 256)
			for stay := range 12 {
				n := 0
				for e := range s.Run(t.Context(), ttstest.Request(1, 1)) {
					d := ttstest.Flatten(e)
					if d.Progress != nil && d.Progress.Partial != nil {
						n++
					}
					if n > stay {
						break
					}
				}
				time.Sleep(time.Second) // the step that runs ends, and the next frees
				synctest.Wait()
				if !empty(m) || !empty(prm) {
					t.Fatalf("%s left after %d reports: %+v and %+v are left", written, stay+1, m.Engine.Stats(), prm.Engine.Stats())
				}
			}
		}
	})
}

func TestAReaderThatLeavesEndsTheStepUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := slow(ttstest.Says(t, ttstest.Words(t).Encode(nil, ttstest.Asked, tokenizer.Options{}), strings.Repeat("one long line ", 40)))
		s := scriptedSearch(t, ttstest.RunOn(t, model, 256, batcher.DefaultOptions()), "beam4x2;include=partial")
		seen := 0
		for e := range s.Run(t.Context(), ttstest.Request(1, 1)) {
			d := ttstest.Flatten(e)
			if d.Progress != nil {
				seen = model.Steps()
				break
			}
		}
		if later := model.Steps() - seen; seen == 0 || later > 2 {
			t.Errorf("left after %d steps of the engine, the search took %d more", seen, later)
		}
	})
}
