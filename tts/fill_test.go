package tts_test

import (
	"testing"
	"testing/synctest"

	"github.com/lutra-lm/lutra/batcher"
	. "github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

func TestAPlainAnswerGetsOthersInLanesToSpareAndIsChargedAlone(t *testing.T) {
	for _, written := range []string{"sc8", "bon8"} {
		synctest.Test(t, func(t *testing.T) {
			m := ttstest.RunOn(t, slow(thinks(t)), 256, batcher.DefaultOptions())
			req := ttstest.Request(3, 1)
			plain := collect(t, 1, Single{Model: m}.Run(t.Context(), req))
			s := scriptedSearch(t, m, written)
			s.Fill = true
			got := carryOut(t, s, req)
			if got.Filled == nil || got.Filled.Offered != 7 || got.Filled.Finished < 2 || got.Filled.Dropped != 0 || got.Filled.Tokens == 0 {
				t.Fatalf("%s: %+v", written, got.Filled)
			}
			if n := 1 + got.Filled.Finished; len(got.Candidates) != n {
				t.Errorf("%s: %d candidates, want %d", written, len(got.Candidates), n)
			}
			if n := len(got.Choices[0].IDs); got.usage.Completion != n || got.Usage.Discarded != 0 {
				t.Errorf("%s: %+v and %+v are charged for an answer of %d tokens", written, got.usage, got.Usage, n)
			}
			first := ""
			for _, c := range got.Candidates {
				if c.Index == 0 {
					first = c.Text
				}
				if written == "sc8" && c.Votes > got.Choices[0].Votes {
					t.Errorf("%s: %q with %d votes was chosen, and there is %q with %d", written, got.text[0], got.Choices[0].Votes, c.Text, c.Votes)
				}
			}
			if first != plain.text[0] {
				t.Errorf("%s: the first candidate is %q, and the plain answer %q", written, first, plain.text[0])
			}
		})
	}
}

func TestWithoutRoomTheAnswerIsThePlainOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := batcher.DefaultOptions()
		opt.Sequences = 4 // of which a quarter is for what people wait for
		m := ttstest.RunOn(t, slow(thinks(t)), 256, opt)
		req := ttstest.Request(5, 1)
		hold, err := m.Engine.OpenBackground(t.Context(), []int32{1})
		if err != nil {
			t.Fatal(err)
		}
		other, err := m.Engine.OpenBackground(t.Context(), []int32{1})
		if err != nil {
			t.Fatal(err)
		}
		plain := collect(t, 1, Single{Model: m}.Run(t.Context(), req))
		s := scriptedSearch(t, m, "sc8")
		s.Fill = true
		got := carryOut(t, s, req)
		if got.Filled.Offered != 0 || got.text[0] != plain.text[0] {
			t.Errorf("%q with %+v, want %q", got.text[0], got.Filled, plain.text[0])
		}
		hold.Close()
		other.Close()
	})
}
