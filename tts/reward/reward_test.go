package reward

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

const solution = "1.\n2.\n\n3.\nAnswer: 3"

// seen makes a toy reward model that notes every text it gives logits for, and
// scores it by opine.
func seen(t *testing.T, format Format) (*toy.Model, *tts.Model, *Scorer, func() []string) {
	t.Helper()
	var texts atomic.Pointer[[]string]
	texts.Store(new([]string))
	tok := ttstest.Words(t)
	good, bad := tok.Encode(nil, "+", tokenizer.Options{})[0], tok.Encode(nil, "-", tokenizer.Options{})[0]
	m := &toy.Model{Logits: func(tokens []int32, row []float32) {
		clear(row)
		all := append(slices.Clone(*texts.Load()), tok.Decode(tokens, true))
		texts.Store(&all)
		x := logit(ttstest.Opine(tokens))
		switch len(row) {
		case 1:
			row[0] = x
		case 2:
			row[0], row[1] = 3, x+3
		default:
			row[good], row[bad] = x+3, 3
		}
	}}
	m.Outputs = format.outputs
	model := ttstest.Run(t, m)
	v, err := New(model, format)
	if err != nil {
		t.Fatal(err)
	}
	return m, model, v, func() []string { return *texts.Load() }
}

// formats returns the known ones, fit for the toy's vocabulary and its answers of
// single lines.
func formats() map[string]Format {
	all := make(map[string]Format)
	for _, f := range Formats() {
		f.Separator = "\n"
		if f.tag != "" {
			f.tag = "<|endoftext|>"
		}
		all[f.Name] = f
	}
	return all
}

func logit(p float32) float32 {
	p = min(max(p, 0.001), 0.999)
	return float32(math.Log(float64(p) / (1 - float64(p))))
}

func TestEachFormatReadsItsScoresWhereTheyStand(t *testing.T) {
	chat := "<|im_start|>user\n"
	reply := "<|im_end|>\n<|im_start|>assistant\n"
	tagged := "<|im_start|>system\n" + qwenSystem + "<|im_end|>\n" + chat + ttstest.Asked + reply
	for name, want := range map[string][]string{
		"skywork-prm": {
			"<|endoftext|>" + ttstest.Asked + "\n1.\n", "<|endoftext|>" + ttstest.Asked + "\n1.\n2.\n",
			"<|endoftext|>" + ttstest.Asked + "\n1.\n2.\n\n3.\n", "<|endoftext|>" + ttstest.Asked + "\n" + solution + "\n",
		},
		"qwen-prm": {
			tagged + "1.<|endoftext|>", tagged + "1.<|endoftext|>2.<|endoftext|>", tagged + "1.<|endoftext|>2.<|endoftext|>3.<|endoftext|>",
			tagged + "1.<|endoftext|>2.<|endoftext|>3.<|endoftext|>Answer: 3<|endoftext|>",
		},
		"trl-prm":       {ttstest.Asked + "\n1.\n", ttstest.Asked + "\n1.\n2.\n", ttstest.Asked + "\n1.\n2.\n3.\n", ttstest.Asked + "\n1.\n2.\n3.\nAnswer: 3\n"},
		"sequence":      {chat + ttstest.Asked + reply + solution + "<|im_end|>\n"},
		"lutra":         {ttstest.Asked + "1.\n", ttstest.Asked + "1.\n2.\n", ttstest.Asked + "1.\n2.\n\n3.\n", ttstest.Asked + solution + "<|im_end|>"},
		"math-shepherd": {ttstest.Asked + " 1. ки", ttstest.Asked + " 1. ки\n2. ки", ttstest.Asked + " 1. ки\n2. ки\n3. ки", ttstest.Asked + " 1. ки\n2. ки\n3. ки\nAnswer: 3 ки"},
		"rlhflow": {
			chat + ttstest.Asked + " 1." + reply,
			chat + ttstest.Asked + " 1." + reply + "+<|im_end|>\n" + chat + "2." + reply,
			chat + ttstest.Asked + " 1." + reply + "+<|im_end|>\n" + chat + "2." + reply + "+<|im_end|>\n" + chat + "3." + reply,
			chat + ttstest.Asked + " 1." + reply + "+<|im_end|>\n" + chat + "2." + reply + "+<|im_end|>\n" + chat + "3." + reply + "+<|im_end|>\n" + chat + "Answer: 3" + reply,
		},
	} {
		format := formats()[name]
		m, model, v, texts := seen(t, format)
		req := ttstest.Request(1, 1)
		prompt := model.Tokenizer.Encode(nil, ttstest.Asked, tokenizer.Options{})
		end, _ := model.Tokenizer.EOS()
		whole := append(model.Tokenizer.Encode(nil, solution, tokenizer.Options{}), end)

		judge, err := v.Open(t.Context(), model, req, prompt)
		if err != nil {
			t.Fatal(err)
		}
		c := tts.Candidate{IDs: whole, Finish: tts.FinishStop}
		if err := judge.Score(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
		if got := texts(); !slices.Equal(got, want) {
			t.Errorf("%s read its scores after %q, want %q", name, got, want)
		}
		for i, s := range c.StepScores {
			parts := []string{want[i]}
			if name == "skywork-prm" { // tokenises each line, and its end, by itself
				question, answer, _ := strings.Cut(want[i], "\n")
				parts = []string{question + "\n"}
				for line := range strings.Lines(answer) {
					parts = append(parts, strings.TrimSuffix(line, "\n"), "\n")
				}
			}
			var read []int32
			for _, part := range parts {
				read = model.Tokenizer.Encode(read, part, tokenizer.Options{ParseSpecial: true})
			}
			want := float64(min(max(ttstest.Opine(read), 0.001), 0.999))
			if format.whole {
				x := float64(logit(ttstest.Opine(read)))
				want = (1 + x/(1+math.Abs(x))) / 2
			}
			if math.Abs(float64(s)-want) > 1e-5 {
				t.Errorf("%s: score %d = %v, want %v", name, i, s, want)
			}
		}
		if charged := judge.Spent(); charged >= m.Computed() {
			t.Errorf("%s: %d tokens are charged before the candidate takes part", name, charged)
		}
		judge.Charge()
		if judge.Spent() < m.Computed() {
			t.Errorf("%s: %d tokens spent, but %d were computed", name, judge.Spent(), m.Computed())
		}
		judge.Close()

		// The same, step by step through forks.
		at, err := v.Open(t.Context(), model, req, prompt)
		if err != nil {
			t.Fatal(err)
		}
		piecewise := tts.Candidate{}
		for i, id := range whole {
			piecewise.IDs = append(piecewise.IDs, id)
			if i == len(whole)-1 {
				piecewise.Finish = tts.FinishStop
			} else if !strings.Contains(string(model.Tokenizer.Piece(id)), "\n") {
				continue
			}
			forks, err := at.Fork(t.Context(), 2)
			if err != nil {
				t.Fatal(err)
			}
			at.Close()
			forks[0].Close()
			at = forks[1]
			if err := at.Score(t.Context(), &piecewise); err != nil {
				t.Fatal(err)
			}
		}
		at.Close()
		// A blank line on its own is read as the end of what came before.
		scores := piecewise.StepScores
		if len(scores) < len(want) || !format.whole && scores[0] != c.StepScores[0] || scores[len(scores)-1] != c.StepScores[len(want)-1] {
			t.Errorf("%s: step by step %v, at once %v", name, scores, c.StepScores)
		}
	}
}

func TestVerifiersThatCannotReadAreRefused(t *testing.T) {
	generator, single, pair := ttstest.Run(t, &toy.Model{}), ttstest.Run(t, &toy.Model{Outputs: 1}), ttstest.Run(t, &toy.Model{Outputs: 2})
	untaught := *single
	untaught.Template = nil
	unmarked := formats()["qwen-prm"]
	unmarked.tag = "<extra_0>"
	for _, c := range []struct {
		m      *tts.Model
		format Format
		want   string
	}{
		{generator, formats()["lutra"], "1024 outputs, want 1"},
		{single, formats()["math-shepherd"], "no token for"},
		{single, formats()["trl-prm"], "1 outputs, want 2"},
		{&untaught, formats()["sequence"], "no chat template"},
		{pair, unmarked, "no token <extra_0>"},
		{single, Format{Name: "blank", outputs: 1}, "separator"},
	} {
		if _, err := New(c.m, c.format); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New with format %q: %v, want an error that says %q", c.format.Name, err, c.want)
		}
	}
	v, err := New(single, Formats()[0])
	if err != nil {
		t.Fatal(err)
	}
	other := *generator
	other.Vocab++
	if _, err := v.Open(t.Context(), &other, ttstest.Request(1, 1), []int32{1}); err == nil {
		t.Error("a verifier was opened on tokens of another vocabulary")
	}
}

func TestAJudgeThatComesLateReadsThePromptToo(t *testing.T) {
	_, model, v, texts := seen(t, formats()["lutra"])
	root, err := v.Open(t.Context(), model, ttstest.Request(1, 1), model.Tokenizer.Encode(nil, ttstest.Asked, tokenizer.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	judges, err := root.Fork(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	root.Close()
	score := func(j tts.Judge, text string) {
		c := tts.Candidate{IDs: model.Tokenizer.Encode(nil, text, tokenizer.Options{})}
		if err := j.Score(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
	}
	score(judges[0], "1.\n2.\n")
	judges[0].Close()
	score(judges[1], "1.\n") // known, but its sequence is gone, and now the prompt's too
	score(judges[1], "1.\n3.\n")
	judges[1].Close()
	if got, want := texts()[len(texts())-1], ttstest.Asked+"1.\n3.\n"; got != want {
		t.Errorf("the last score was read after %q, want %q", got, want)
	}
}

func TestParagraphsAreStepsWhereTheModelSaysSo(t *testing.T) {
	_, model, v, texts := seen(t, Format{Name: "paragraphs", Separator: "\n\n", outputs: 2, write: joined})
	ratings, _, err := v.Rate(t.Context(), &ttstest.Request(1, 1).Prompt, scaling.AggregateMean, "1.\n2.\n\n\n\n3.", "1.\n2.")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{ttstest.Asked + "\n\n1.\n2.\n\n", ttstest.Asked + "\n\n1.\n2.\n\n3.\n\n"}
	if got := slices.Sorted(slices.Values(texts())); !slices.Equal(got, want) {
		t.Errorf("%q was read, want %q", got, want)
	}
	if got := ratings[0].Steps; !slices.Equal(got, []Extent{{0, 7}, {9, 11}}) {
		t.Errorf("steps %v, want [0,7) and [9,11)", got)
	}
	// Where a search divides the text otherwise, its steps are judged.
	judge, err := v.Open(t.Context(), model, ttstest.Request(1, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer judge.Close()
	c := tts.Candidate{IDs: model.Tokenizer.Encode(nil, "1.\n", tokenizer.Options{})}
	for range 2 { // nothing new the second time
		if err := judge.Score(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.StepScores) != 1 {
		t.Errorf("the scores of one line are %v", c.StepScores)
	}
}

func TestModelsThatWriteCritiquesRateToo(t *testing.T) {
	for name, want := range map[string]int{"think-prm": 1, "gen-prm": 2, "rubric": 1} {
		format := formats()[name]
		format.Judge.MaxTokens = 3
		_, model, v, _ := seen(t, format)
		ratings, spent, err := v.Rate(t.Context(), &ttstest.Request(1, 1).Prompt, scaling.AggregateLast, "1.\n2.", "3.\n4.")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range ratings {
			if len(r.StepScores) != want || len(r.Steps) != want || r.Score <= 0 || r.Score >= 1 {
				t.Errorf("%s: %+v", name, r)
			}
		}
		verifiers := VerifiersFor(model, func(yield func(string, *Scorer) bool) { yield(name, v) })
		if _, ok := verifiers.ByName[name].(tts.Generative); !ok || spent == 0 {
			t.Errorf("%s is no verifier that writes, or has read %d tokens", name, spent)
		}
	}
}
