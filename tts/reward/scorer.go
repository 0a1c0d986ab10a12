// Package reward scores answers with reward models. A model of a known Format
// becomes a Scorer, by which searches judge candidates and Rate judges given
// responses.
//
//	candidates ──tokenJudge, textJudge──▶ scoreTree ──batcher──▶ scores
//
// Judges feed the model with the generator's tokens or with text of the model's own
// format. The scoreTree of a request reads what they have in common once.
package reward

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/judge"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Scorer scores with a process reward model on an engine of its own. It reads the beginning that candidates
// of a request share once, and later only their new text. The engine batches all candidates and requests.
type Scorer struct {
	model  *tts.Model
	format Format
	ids    []int32       // of the words good and bad, or of a head's two outputs; nil: the one output
	writer *judge.Scorer // of a format that writes critiques; else nil
}

// New makes a scorer of m, which must be a model of that format.
func New(m *tts.Model, f Format) (*Scorer, error) {
	v := &Scorer{model: m, format: f}
	misfit := func(reason string, args ...any) error {
		return fmt.Errorf("reward: model %q is not of format %q: "+reason, append([]any{m.Name, f.Name}, args...)...)
	}
	if f.outputs > 0 && m.Outputs != f.outputs {
		return nil, misfit("it gives %d outputs, want %d", m.Outputs, f.outputs)
	}
	if f.outputs == 2 {
		v.ids = []int32{1, 0}
	}
	if f.chat && m.Template == nil {
		return nil, misfit("it has no chat template")
	}
	if !f.whole && len(m.Tokenizer.Encode(nil, f.Separator, tokenizer.Options{})) == 0 {
		return nil, misfit("it has no token for the separator %q", f.Separator)
	}
	if f.tag != "" && len(m.Tokenizer.Encode(nil, f.tag, tokenizer.Options{ParseSpecial: true})) != 1 {
		return nil, misfit("its vocabulary has no token %s", f.tag)
	}
	if f.Writes {
		f.Judge.Format = f.Name
		v.writer = judge.New(f.Judge, m)
	}
	if f.good == "" {
		return v, nil
	}
	for _, word := range []string{f.good, f.bad} {
		ids := m.Tokenizer.Encode(nil, word, tokenizer.Options{})
		if len(ids) == 0 || int(ids[len(ids)-1]) >= m.Outputs {
			return nil, misfit("it has no token for %q", word)
		}
		v.ids = append(v.ids, ids[len(ids)-1])
	}
	return v, nil
}

// read makes a score in [0, 1] of the logits at the sequence's end.
func (v *Scorer) read(ctx context.Context, seq *batcher.Sequence) (float32, error) {
	row, err := seq.Logits(ctx, v.ids...)
	if err != nil {
		return 0, err
	}
	x := float64(row[0])
	if v.ids != nil {
		x -= float64(row[1]) // a softmax of two is the sigmoid of their difference
	}
	if v.format.whole {
		return float32((1 + x/(1+math.Abs(x))) / 2), nil
	}
	return float32(1 / (1 + math.Exp(-x))), nil
}

// Open implements tts.Scorer.
func (v *Scorer) Open(ctx context.Context, m *tts.Model, req *tts.Request, prompt []int32) (tts.Judge, error) {
	if v.writer != nil {
		return v.writer.Open(ctx, m, req, prompt)
	}
	if v.format.write != nil {
		asked, begun := conversation(m, req, prompt)
		return &textJudge{reader: v.reader(nil, nil), from: m, asked: asked, begun: begun}, nil
	}
	for _, id := range prompt {
		if m.Vocab != v.model.Vocab || m.Tokenizer.Token(id) != v.model.Tokenizer.Token(id) {
			return nil, scaling.Errorf(scaling.CodeValue, "verifier", "%s and %s have different vocabularies", v.model.Name, m.Name)
		}
	}
	seq, err := v.model.Engine.OpenBackground(ctx, prompt)
	if err != nil {
		return nil, err
	}
	j := &tokenJudge{reader: v.reader(prompt, seq)}
	j.charged = len(prompt)
	return j, nil
}

// reader makes the first reader of a request. It stands after ids, with which all
// that will be read begins and which seq holds; both are nil if there is no such
// beginning.
func (v *Scorer) reader(ids []int32, seq *batcher.Sequence) reader {
	t := &scoreTree{v: v}
	root := t.begin(ids, seq)
	return reader{scoreTree: t, root: root, at: root}
}

// tokenJudge feeds a reward model with the generator's tokens.
type tokenJudge struct {
	reader
	fed int // tokens of the candidate
}

// Score implements tts.Judge: one score a line. What is left after the last
// line's end is read at its last token.
func (j *tokenJudge) Score(ctx context.Context, c *tts.Candidate) error {
	tok, blank := j.v.model.Tokenizer, true
	for i := j.fed; i < len(c.IDs); i++ {
		id := c.IDs[i]
		piece := string(tok.Piece(id))
		blank = blank && strings.TrimSpace(piece) == "" && !tok.EOG(id)
		ends := strings.Contains(piece, "\n") || tok.EOG(id)
		if i < len(c.IDs)-1 && (!ends || blank) {
			continue
		}
		s, err := j.step(ctx, j.at, c.IDs[j.fed:i+1])
		if err != nil {
			return err
		}
		j.fed, blank = i+1, true
		c.StepScores = append(c.StepScores, s)
	}
	return nil
}

// Fork implements tts.Judge.
func (j *tokenJudge) Fork(_ context.Context, n int) ([]tts.Judge, error) {
	judges := make([]tts.Judge, n)
	for i, r := range j.copies(n) {
		judges[i] = &tokenJudge{reader: r, fed: j.fed}
	}
	return judges, nil
}

// Model returns the reward model itself.
func (v *Scorer) Model() *tts.Model { return v.model }

// Reads reports whether v can judge what m writes: reward models that take the
// generator's very tokens need its vocabulary.
func (v *Scorer) Reads(m *tts.Model) bool {
	if v.format.write != nil || v.writer != nil {
		return true
	}
	if m.Vocab != v.model.Vocab {
		return false
	}
	for id := range int32(m.Vocab) {
		if m.Tokenizer.Token(id) != v.model.Tokenizer.Token(id) {
			return false
		}
	}
	return true
}

// isWriter tells whether a scorer writes critiques.
func isWriter(s tts.Scorer) bool {
	_, writes := s.(tts.Generative)
	return writes
}

// VerifiersFor returns the named scorers that can judge m's answers, m's probes, and m itself. The default is
// the first probe times the first scorer, or the one that there is.
func VerifiersFor(m *tts.Model, scorers iter.Seq2[string, *Scorer]) tts.Verifiers {
	v := tts.Verifiers{ByName: map[string]tts.Scorer{scaling.VerifierSelf: judge.Self()}}
	for _, p := range m.Probes {
		v.ByName[p.Name] = p.Scorer
	}
	reward := ""
	for name, scorer := range scorers {
		if !scorer.Reads(m) {
			continue
		}
		v.ByName[name] = scorer
		if scorer.writer != nil {
			v.ByName[name] = scorer.writer
		}
		if reward == "" {
			reward = name
		}
	}
	switch {
	case len(m.Probes) == 0:
		v.Default = reward
	case reward == "", isWriter(v.ByName[reward]):
		v.Default = m.Probes[0].Name
	default:
		v.Default = m.Probes[0].Name + tts.Times + reward
	}
	return v
}
