package npu

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/lab/eval"
	"github.com/lutra-lm/lutra/lab/reference"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// subject is a model on a backend.
type subject struct {
	config.Model
	backend string
}

// examine returns the perplexity of solutions and the number of right greedy answers.
func (s subject) examine(ctx context.Context, problems []solvedProblem) (perplexity float64, right int, err error) {
	if perplexity, err = s.perplexity(ctx, problems); err != nil {
		return 0, 0, err
	}
	right, err = s.answers(ctx, problems)
	return perplexity, right, err
}

// perplexity returns exp of the mean negative log-likelihood of the solutions'
// tokens, each after its question.
func (s subject) perplexity(ctx context.Context, problems []solvedProblem) (float64, error) {
	sum, count := 0.0, 0
	err := reference.With(ctx, &reference.Options{Model: cmp.Or(s.Path, s.Embedded), Packing: "auto", KVType: "f16", Backend: s.backend}, func(b *models.Bundle, score reference.Scorer) error {
		if b.Template == nil {
			return fmt.Errorf("npu: the model has no chat template: %w", b.TemplateErr)
		}
		for _, p := range problems {
			text, err := b.Template.Render(ctx, template.Input{Messages: []template.Message{{Role: "user", Content: p.Question}}, AddGenerationPrompt: true})
			if err != nil {
				return err
			}
			opt := tokenizer.Options{AddSpecial: true, ParseSpecial: true}
			begin := len(b.Tokenizer.Encode(nil, text, opt))
			tokens := b.Tokenizer.Encode(nil, text+p.solution(), opt)
			err = score(tokens, func(t int, logits []float32) error {
				if t+1 >= begin && t+1 < len(tokens) {
					sum -= reference.LogProbability(logits, tokens[t+1])
					count++
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return math.Exp(sum / float64(max(1, count))), err
}

// answers asks every problem once, greedily, and counts what is right.
func (s subject) answers(ctx context.Context, problems []solvedProblem) (right int, err error) {
	cfg := config.Default()
	cfg.Models, cfg.Verifiers, cfg.Backend = []config.Model{s.Model}, nil, s.backend
	err = engines.With(ctx, cfg, zerolog.Nop(), func(ctx context.Context, r *engines.Runtime) error {
		h := r.Hosts[0]
		e := eval.Experiment{Concurrency: 8, Journal: eval.NewJournal(), Points: []eval.Point{{Model: h.Model.Name, Method: eval.Single, N: 1}},
			Solve: eval.Local(map[string]eval.Searcher{h.Model.Name: {Model: h.Model}}, eval.Asking{MaxTokens: 256})}
		for _, p := range problems {
			e.Problems = append(e.Problems, eval.Problem{Question: p.Question, Answer: p.Number.String()})
		}
		if err := e.Run(ctx); err != nil {
			return err
		}
		for _, rec := range e.Journal.Records() {
			if rec.Right {
				right++
			}
		}
		return nil
	})
	return right, err
}
