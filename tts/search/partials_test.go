package search

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/tts"
)

func TestACandidateIsCompleteWithTheLastOfItsText(t *testing.T) {
	p := &partials{}
	p.begin([]*beam{{cand: &tts.Candidate{}}, {cand: &tts.Candidate{}}}, 0)
	texts := []string{"a" + strings.Repeat("ü", partialBytes), "short"}
	for i, e := range p.beams {
		e.now.Finish, e.now.Answer, e.now.Judged, e.now.Score = tts.FinishStop, "7", true, 0.5
		e.text, e.news = []byte(texts[i]), true
	}
	reported := make([]string, 2)
	var order []int
	for gained := p.take(); gained != nil; gained = p.take() {
		size := 0
		for _, one := range gained {
			reported[one.Index] += one.Text
			order = append(order, one.Index)
			size += len(one.Text)
			whole := reported[one.Index] == texts[one.Index]
			if complete := one.Finish == tts.FinishStop && one.Answer == "7" && one.Judged && one.Score == 0.5; complete != whole || one.Judged != whole || !utf8.ValidString(one.Text) {
				t.Errorf("with %d of %d bytes candidate %d is reported as %+v", len(reported[one.Index]), len(texts[one.Index]), one.Index, one.Finish)
			}
		}
		if size > partialBytes {
			t.Errorf("one report holds %d bytes of text, want at most %d", size, partialBytes)
		}
	}
	if !slices.Equal(reported, texts) || !slices.Equal(order, []int{0, 1, 0, 0}) {
		t.Errorf("candidates were reported as %v, with %d and %d bytes", order, len(reported[0]), len(reported[1]))
	}
}
