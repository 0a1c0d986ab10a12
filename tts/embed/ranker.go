package embed

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts"
)

// Pair is a query and a document that may answer it.
type Pair struct{ Query, Document string }

// Scorer scores pairs. A higher score is a better answer. The second result counts the
// tokens read. Errors are as of Embedder.Embed.
type Scorer interface {
	Score(ctx context.Context, pairs []Pair) ([]float32, int, error)
	// With returns the scorer with its model in another variant.
	With(m *tts.Model) Scorer
}

var (
	_ Scorer = (*Embedder)(nil)
	_ Scorer = (*Ranker)(nil)
)

// Score implements Scorer: the cosine of the angle between the two texts' vectors, in
// [-1, 1]. A text that occurs in several pairs is read once.
func (e *Embedder) Score(ctx context.Context, pairs []Pair) ([]float32, int, error) {
	r := Request{}
	number := map[string]int{}
	var first []TextError // where the texts occur
	add := func(i int, document bool, text string) {
		if _, ok := number[text]; !ok {
			number[text] = len(r.Texts)
			r.Texts = append(r.Texts, tts.Prompt{Text: text})
			first = append(first, TextError{Index: i, Document: document})
		}
	}
	for i, p := range pairs {
		add(i, false, p.Query)
		add(i, true, p.Document)
	}
	vectors, read, err := e.Embed(ctx, &r)
	if fault, ok := err.(*TextError); ok {
		at := first[fault.Index]
		at.Err = fault.Err
		return nil, 0, &at
	}
	if err != nil {
		return nil, 0, err
	}
	scores := make([]float32, len(pairs))
	for i, p := range pairs {
		sum := 0.0
		document := vectors[number[p.Document]]
		for k, x := range vectors[number[p.Query]] {
			sum += float64(x) * float64(document[k])
		}
		scores[i] = float32(sum)
	}
	return scores, read, nil
}

// With implements Scorer.
func (e *Embedder) With(m *tts.Model) Scorer { return &Embedder{m} }

// The places of a template where the two texts of a pair stand.
const (
	queryPlace    = "{query}"
	documentPlace = "{document}"
)

// Ranker scores pairs with a model that reads both texts of one together, and whose
// head says how well they go together. It may be used by many callers at once.
type Ranker struct {
	model *tts.Model
	head  *models.Classifier // nil: the model's logits are the scores
	parts []part
}

// part is a piece of a ranker's template: special tokens, or text in which the texts of
// a pair may stand.
type part struct {
	ids  []int32
	text string
}

// With implements Scorer.
func (r *Ranker) With(m *tts.Model) Scorer { return &Ranker{model: m, head: r.head, parts: r.parts} }

// NewRanker makes a ranker of m. A head scores its pooled hidden states. Without one its logits must be one score, or two
// whose softmax gives the first. template is the prompt, with {query} and {document}. With a head it may be empty, since an
// encoder reads the two texts with its own separators.
func NewRanker(m *tts.Model, template string, head *models.Classifier) (*Ranker, error) {
	if head == nil && (m.Config.Generates() || m.Outputs > 2) || head != nil && m.Config.Pooling == models.PoolingNone {
		return nil, fmt.Errorf("%w: %q ranks nothing", ErrModel, m.Name)
	}
	if head != nil && template == "" {
		parts, err := pairParts(m)
		return &Ranker{model: m, head: head, parts: parts}, err
	}
	for _, place := range []string{queryPlace, documentPlace} {
		if !strings.Contains(template, place) {
			return nil, fmt.Errorf("%w: the rerank template of %q has no %s", ErrModel, m.Name, place)
		}
	}
	v := &Ranker{model: m, head: head}
	for rest := template; rest != ""; {
		at, name, id := firstControl(m, rest)
		if at > 0 {
			v.parts = append(v.parts, part{text: rest[:at]})
		}
		if name != "" {
			v.parts = append(v.parts, part{ids: []int32{id}})
		}
		rest = rest[at+len(name):]
	}
	return v, nil
}

// pairParts returns what an encoder reads of a pair, as it was trained: [CLS] query [SEP]
// document [SEP], or of RoBERTa's family <s> query </s></s> document </s>.
func pairParts(m *tts.Model) ([]part, error) {
	bos, begins := m.Tokenizer.BOS()
	separator, separates := m.Tokenizer.Separator()
	if !begins || !separates {
		return nil, fmt.Errorf("%w: the file of %q names no tokens that begin and separate texts", ErrModel, m.Name)
	}
	between := []int32{separator}
	if m.Tokenizer.Token(separator) != "[SEP]" {
		between = append(between, separator)
	}
	return []part{{ids: []int32{bos}}, {text: queryPlace}, {ids: between}, {text: documentPlace}, {ids: []int32{separator}}}, nil
}

// firstControl returns where the first special token of a text begins, with its name and id;
// without any, the text's end.
func firstControl(m *tts.Model, text string) (at int, name string, id int32) {
	for _, id := range m.Tokenizer.Encode(nil, text, tokenizer.Options{ParseSpecial: true}) {
		if name := m.Tokenizer.Token(id); len(m.Tokenizer.Piece(id)) == 0 && strings.Contains(text, name) {
			return strings.Index(text, name), name, id
		}
	}
	return len(text), "", 0
}

// tokens returns what the model reads for a pair. Its texts are plain text: the name of a
// special token in a document is no token.
func (v *Ranker) tokens(ctx context.Context, p Pair) ([]int32, error) {
	fill := strings.NewReplacer(queryPlace, p.Query, documentPlace, p.Document)
	var ids []int32
	for _, part := range v.parts {
		if part.ids != nil {
			ids = append(ids, part.ids...)
			continue
		}
		prepared, err := v.model.PrepareRequest(ctx, &tts.Request{
			Prompt: tts.Prompt{Text: fill.Replace(part.text), NoBOS: true, NoSpecialTokens: true}, NoTokens: true,
		})
		if err != nil {
			return nil, err
		}
		ids = append(ids, prepared.Tokens...)
	}
	if n := len(ids); n > v.model.Context {
		return nil, &tts.ContextError{Limit: v.model.Context, Prompt: n, Part: tts.PartPrompt}
	}
	return ids, nil
}

// Score implements Scorer: scores in [0, 1].
func (v *Ranker) Score(ctx context.Context, pairs []Pair) ([]float32, int, error) {
	scores := make([]float32, len(pairs))
	read, err := each(ctx, pairs, func(ctx context.Context, i int, open opener) (int, error) {
		ids, err := v.tokens(ctx, pairs[i])
		if err != nil {
			return 0, &TextError{Index: i, Document: true, Err: err}
		}
		seq, err := open(v.model.Engine, ids)
		if err != nil {
			return 0, err
		}
		defer seq.Close()
		row, err := v.row(ctx, seq)
		if err != nil {
			return 0, err
		}
		x := float64(row[0])
		if len(row) == 2 { // a softmax of two is the sigmoid of their difference
			x -= float64(row[1])
		}
		if x != x { // a head of its own may overflow
			return 0, models.ErrNotFinite
		}
		scores[i] = float32(1 / (1 + math.Exp(-x)))
		return len(ids), nil
	})
	return scores, read, err
}

// row returns the scores of a sequence: one, or the scores of yes and no.
func (v *Ranker) row(ctx context.Context, seq *batcher.Sequence) ([]float32, error) {
	if v.head == nil {
		return seq.Logits(ctx)
	}
	state, err := seq.Embed(ctx)
	if err != nil {
		return nil, err
	}
	return v.head.Scores(state), nil
}
