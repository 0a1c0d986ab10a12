package openai

import (
	"fmt"
	"strconv"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// Candidates reads of whose search the choices are candidates: their numbers, the tokens
// that each has already, and what ends them beside the end of an answer.
func (f Fields) Candidates(req *tts.Request, m *tts.Model, most int) {
	items, given := f.List("candidates", most)
	if !given {
		for _, name := range []string{"begun", "delimiters"} {
			if f.Has(name) {
				f.Fail(jsonread.CodeValue, name, "it goes with 'candidates' alone.")
			}
		}
		return
	}
	if len(items) == 0 {
		f.Fail(jsonread.CodeValue, "candidates", "the list is empty.")
	}
	req.Continued = make([]tts.Continued, len(items))
	for i, item := range items {
		n, err := strconv.ParseInt(string(item), 10, 32)
		if err != nil || n < 0 || n > MaxCandidate {
			f.Fail(jsonread.CodeValue, fmt.Sprintf("candidates[%d]", i), "%s is not a number between 0 and %d.", jsonread.Brief(item), MaxCandidate)
			return
		}
		req.Continued[i].Candidate = int(n)
	}
	f.begun(req, m, most)
	for _, name := range []string{"n", "echo", "suffix"} {
		if f.Has(name) {
			f.Fail(jsonread.CodeValue, name, "it cannot be given together with 'candidates'.")
		}
	}
	delimiters, _ := f.List("delimiters", MaxDelimiters)
	for i, item := range delimiters {
		d, ok := jsonread.Text(item)
		if !ok || d == "" || len(d) > MaxDelimiterLen {
			f.Fail(jsonread.CodeValue, fmt.Sprintf("delimiters[%d]", i), "a delimiter is a string of 1 to %d bytes.", MaxDelimiterLen)
		}
		req.Delimiters = append(req.Delimiters, d)
	}
}

// begun reads the tokens that candidates have already.
func (f Fields) begun(req *tts.Request, m *tts.Model, most int) {
	lists, given := f.List("begun", most)
	if given && len(lists) != len(req.Continued) {
		f.Fail(jsonread.CodeValue, "begun", "%d lists of tokens are not those of %d candidates.", len(lists), len(req.Continued))
		return
	}
	for i, list := range lists {
		req.Continued[i].Begun = f.Tokens(fmt.Sprintf("begun[%d]", i), list, m.Context, m.Vocab)
	}
}
