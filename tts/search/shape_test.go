package search_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/constrain"
	"github.com/lutra-lm/lutra/tts/toolcall"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// saysOneOf returns a model that answers ttstest.Asked with any of texts.
func saysOneOf(t *testing.T, texts ...string) *toy.Model {
	t.Helper()
	tok := ttstest.Words(t)
	begin := len(tok.Encode(nil, ttstest.Asked, tokenizer.Options{}))
	end, _ := tok.EOS()
	var all [][]int32
	for _, text := range texts {
		all = append(all, append(tok.Encode(nil, text, tokenizer.Options{}), end))
	}
	return &toy.Model{Logits: func(tokens []int32, row []float32) {
		clear(row)
		said := tokens[min(begin, len(tokens)):]
		for _, ids := range all {
			if len(said) < len(ids) && slices.Equal(ids[:len(said)], said) {
				row[ids[len(said)]] = 50
			}
		}
	}}
}

// steps returns the solution steps that lead to a candidate.
func (f *found) steps(c *tts.Candidate) (list []string) {
	for at := c.Node; at >= 0; at = f.Tree[at].Parent {
		list = append(list, f.Tree[at].Text)
	}
	slices.Reverse(list)
	return list
}

// stepwise are plans of all methods that work in solution steps.
var stepwise = []string{"beam8x2", "dvts4x2", "pf4", "pf4;particles.iterations=2", "beam4x2;step.max_tokens=8"}

func TestACallIsTheLastSolutionStepOfACandidate(t *testing.T) {
	const look, second, rest = "I look.\nAt both.\n", "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>", "\nThen I talk.\nAnd go on.\n"
	first := func(x string) string {
		return "<tool_call>\n{\"name\": \"f\",\n \"arguments\": {\"y\": \"a\\n,\", \n\"x\": " + x + "}}\n</tool_call>\n"
	}
	m := ttstest.RunOn(t, saysOneOf(t, look+first("1")+second+rest, look+first("1.0")+second+rest, look+first("2")+second), 1024, batcher.DefaultOptions())
	for _, single := range []bool{false, true} {
		c := &tts.Calling{Format: toolcall.Hermes, Tools: []toolcall.Tool{{Name: "f"}, {Name: "g"}}, Single: single}
		ask := func(seed uint64) *tts.Request {
			req := ttstest.Request(seed, 1)
			req.Calling = c
			return req
		}
		answers := []string{`f({"x":1,"y":"a\n,"})`, `f({"x":2,"y":"a\n,"})`}
		if !single {
			answers = []string{answers[0] + "\ng({})", answers[1] + "\ng({})"}
		}
		for _, written := range stepwise {
			s := scriptedSearch(t, m, written)
			f := carryOut(t, s, ask(3))
			for _, cand := range f.Candidates {
				steps := f.steps(cand)
				if n := len(steps); !slices.Contains(answers, cand.Answer) || cand.Finish != tts.FinishStop || n < 3 || strings.Join(steps[:n-1], "") != look || len(cand.StepScores) != n {
					t.Errorf("%s: steps %q come to %q, %s", written, steps, cand.Answer, cand.Finish)
				}
				if strings.Contains(cand.Text, "Then") || !single && !strings.HasSuffix(strings.TrimSpace(cand.Text), second) {
					t.Errorf("%s: %q goes on after its calls", written, cand.Text)
				}
			}
			var all sync.WaitGroup
			var crowd [4]found
			for i := range crowd {
				all.Go(func() { crowd[i] = carryOut(t, scriptedSearch(t, m, written), ask(uint64(i))) })
			}
			all.Wait()
			if got := crowd[3]; got.text[0] != f.text[0] || !slices.Equal(got.Tree, f.Tree) || got.usage != f.usage && got.usage.Completion != f.usage.Completion {
				t.Errorf("%s: %q in a crowd, %q alone", written, got.text, f.text)
			}
		}
	}
}

func TestWithinJSONSolutionStepsEndWithMembers(t *testing.T) {
	const answer = `{"a": 1, "b": [1, 2], "c": [{"d": "x, y"}, [3, 4]], "e": {"f": true}}`
	want := []string{`{"a": 1,`, ` "b": [1, 2],`, ` "c": [{"d": "x, y"},`, ` [3, 4]],`, ` "e": {"f": true}}`}
	for _, c := range []struct {
		text, plan string
		json       bool
		want       []string
	}{
		{answer, "", true, want},
		{answer, ";step.members=true", false, want},
		{answer, `;step.stop="\n"`, true, []string{answer}},
		{answer, "", false, []string{answer}},
		{"Like, so:\nThis.\n" + answer, ";step.members=true", false, append([]string{"Like, so:\n", "This.\n"}, want...)},
		{"<think>{\"a\": 1, \"b\": 2\n}</think>{\n \"a\": 1,\n \"b\": 2\n}", "", true, []string{"<think>{\"a\": 1, \"b\": 2\n", "}</think>{\n \"a\": 1,", "\n \"b\": 2\n}"}},
	} {
		m := ttstest.Run(t, saysOneOf(t, c.text))
		req := ttstest.Request(1, 1)
		req.JSON = c.json
		for _, method := range []string{"beam4x2", "pf2"} {
			f := carryOut(t, scriptedSearch(t, m, method+c.plan), req)
			if got := f.steps(f.Choices[0]); strings.Join(got, "|") != strings.Join(c.want, "|") {
				t.Errorf("%s%s: steps %q, want %q", method, c.plan, got, c.want)
			}
		}
	}
}

func TestBeamsOfStructuredAnswersAreTheSameAloneAndInACrowd(t *testing.T) {
	m := ttstest.RunOn(t, ttstest.Eager(t), 1024, batcher.DefaultOptions())
	format := asFormat(t, m, `{"type": "object", "properties": {"a": {"enum": [1, 2, 3]}, "b": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "boolean"}}, "required": ["c"]}, "minItems": 1, "maxItems": 3}, "d": {"enum": ["x", "y"]}},
		"required": ["a", "b", "d"], "additionalProperties": false}`, true)
	for _, written := range stepwise[:4] {
		ask := func(seed uint64) *tts.Request {
			req := ttstest.Request(seed, 1)
			req.Rules, req.Sampling.MaxTokens = constrain.Rules{Format: format, JSON: true}, 120
			return req
		}
		var alone, crowd [2]found
		for i := range alone {
			alone[i] = carryOut(t, scriptedSearch(t, m, written), ask(uint64(i)))
		}
		var all sync.WaitGroup
		for i := range crowd {
			all.Go(func() { crowd[i] = carryOut(t, scriptedSearch(t, m, written), ask(uint64(i))) })
		}
		all.Wait()
		for i, f := range alone {
			steps := f.steps(f.Choices[0])
			if len(steps) < 3 || !strings.HasPrefix(f.text[0], "{") || !strings.HasSuffix(f.text[0], "}") {
				t.Errorf("%s: steps %q", written, steps)
			}
			if a, b := fmt.Sprint(f.text, f.Tree, f.usage.Completion), fmt.Sprint(crowd[i].text, crowd[i].Tree, crowd[i].usage.Completion); a != b {
				t.Errorf("%s: %s in a crowd, %s alone", written, b, a)
			}
		}
	}
}
