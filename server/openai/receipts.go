package openai

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/receipt"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/search"
)

// beginReceipt begins the receipt that a request wants, if it wants one. The first of a model
// waits until its file has been read.
func (a *asked) beginReceipt(c *api.Call) error {
	if !a.receipt.wanted {
		return nil
	}
	body := c.Body.Source()
	if !a.receipt.hashes && !utf8.Valid(body) {
		return api.Invalid(jsonread.CodeValue, "receipt", "Invalid 'receipt': the request is not valid UTF-8 and cannot be written into a receipt; ask for \"hash\".")
	}
	if err := c.Lease.Grow(4 * int64(len(body))); err != nil { // twice, quotes escaped, and once more while it is written
		return err
	}
	out := receipt.Receipt{Endpoint: c.URL.Path, Kernels: a.Model.Identity.Kernels(), Build: registry.Build(), Sampling: receipt.NewSampling(a.Requests[0])}
	var err error
	if out.Model, err = receiptModel(c.Context(), a.Model.Model); err != nil {
		return err
	}
	if a.report != nil {
		if out.Search, err = receiptSearch(c.Context(), a.Search); err != nil {
			return err
		}
		out.Search.Chosen = a.Choice != nil
	}
	n := a.Requests[0].N
	a.builder = receipt.NewBuilder(out, body, a.receipt.hashes, len(a.Requests), n)
	for p, req := range a.Requests {
		req.Sampled = func(choice int, id int32) { a.builder.Take(p*n+choice, id) }
	}
	a.Filters, a.PerToken = append(a.Filters, a.builder.Filter), api.PerID
	return nil
}

// place is a turn of models.Identity.Digest beside the engines.
func place(ctx context.Context) (leave func(), err error) {
	_, leave, err = cpulimit.Enter(ctx)
	return leave, err
}

// receiptModel describes m.
func receiptModel(ctx context.Context, m *tts.Model) (receipt.Model, error) {
	sum, err := m.Identity.Digest(ctx, place)
	if errors.Is(err, models.ErrNoIdentity) {
		return receipt.Model{}, api.Invalid(jsonread.CodeUnsupported, "receipt", "Invalid 'receipt': the model '%s' has no file to take a hash of.", m.Name)
	}
	var adapters []receipt.Adapter
	if m.Variant != nil && err == nil {
		for _, u := range m.Variant.Uses {
			a := receipt.Adapter{Name: u.Adapter.Name, Scale: u.Scale}
			if a.SHA256, err = u.Adapter.Identity.Digest(ctx, place); err != nil {
				break
			}
			adapters = append(adapters, a)
		}
	}
	return receipt.Model{Adapters: adapters, Name: m.Name, SHA256: sum, Metadata: m.Identity.Metadata(), Packing: m.Identity.Packings(), KV: m.Engine.KVType().String(), Context: m.Context}, err
}

// receiptSearch describes a search, with the verifier that judges in it.
func receiptSearch(ctx context.Context, s *search.Search) (*receipt.Search, error) {
	plan := s.Plan
	votes := plan.Method == scaling.SelfConsistency && plan.Select != scaling.SelectWeightedVote || plan.Method == scaling.DeepConfidence
	if plan.Verifier == "" && plan.Verify.Kind() == "" && !votes {
		if plan.Verifier = s.Verifiers.Default; plan.Verifier == "" {
			plan.Verifier = scaling.VerifierLogprob
		}
	}
	out := &receipt.Search{}
	for name := range strings.SplitSeq(plan.Verifier, tts.Times) {
		switch judge := s.Verifiers.ByName[name].(type) {
		case interface{ Model() *tts.Model }: // of its own
			if judge.Model() == nil {
				continue
			}
			m, err := receiptModel(ctx, judge.Model())
			if err != nil {
				return nil, err
			}
			out.Verifier = &m
		case interface{ Digest() string }:
			out.Probe = &receipt.Probe{Name: name, SHA256: judge.Digest()}
		}
	}
	out.Plan = plan.JSON()
	return out, nil
}

// asked is a request for a chat or for completions.
type asked struct {
	*api.Ask
	*encoder
	receipt wish
}
