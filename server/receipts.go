package server

import (
	"context"
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/receipt"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/reward"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// receiptState is what a request wants of a receipt, and how far that has come.
type receiptState struct {
	wanted  bool
	hashes  bool // and no words of the request or the answer
	builder *receipt.Builder
}

// perToken is about how many bytes a receipt holds of a token: its id, which is written
// in digits.
func (r *receiptState) perToken() int64 {
	if r.builder == nil {
		return 0
	}
	return 16
}

// finalReceipt is that of the complete answer, nil if it has none.
func (g *generation) finalReceipt() *receipt.Receipt { return g.receipt.builder.Receipt() }

// beginReceipt begins the receipt that a request with this body wants, if it wants one.
// The first of a model waits until its file has been read.
func (s *Server) beginReceipt(r *http.Request, g *generation, body []byte) error {
	if !g.receipt.wanted {
		return nil
	}
	ctx, rec := r.Context(), recordOf(r.Context())
	if !g.receipt.hashes && !utf8.Valid(body) {
		return invalid(jsonread.CodeValue, "receipt", "Invalid 'receipt': the request is not valid UTF-8 and cannot be written into a receipt; ask for \"hash\".")
	}
	if err := rec.lease.Grow(4 * int64(len(body))); err != nil { // twice, quotes escaped, and once more while it is written
		return err
	}
	out := receipt.Receipt{Endpoint: r.URL.Path, Kernels: g.model.Identity.Kernels(), Build: registry.Build(), Sampling: receipt.NewSampling(g.requests[0])}
	var err error
	if out.Model, err = receiptModel(ctx, g.model.Model); err != nil {
		return err
	}
	if g.report != nil {
		if out.Search, err = g.receiptSearch(ctx); err != nil {
			return err
		}
	}
	n := g.requests[0].N
	g.receipt.builder = receipt.NewBuilder(out, body, g.receipt.hashes, len(g.requests), n)
	for p, req := range g.requests {
		req.Sampled = func(choice int, id int32) { g.receipt.builder.Take(p*n+choice, id) }
	}
	return nil
}

// receiptModel describes m.
func receiptModel(ctx context.Context, m *tts.Model) (receipt.Model, error) {
	ctx, leave, err := cpulimit.Enter(ctx)
	if err != nil {
		return receipt.Model{}, err
	}
	defer leave()
	sum, err := m.Identity.Digest(ctx, cpulimit.Pause)
	if errors.Is(err, models.ErrNoIdentity) {
		return receipt.Model{}, invalid(jsonread.CodeUnsupported, "receipt", "Invalid 'receipt': the model '%s' has no file to take a hash of.", m.Name)
	}
	return receipt.Model{Name: m.Name, SHA256: sum, Metadata: m.Identity.Metadata(), Packing: m.Identity.Packings(), KV: m.Engine.KVType().String(), Context: m.Context}, err
}

// receiptSearch describes the search of g, with the verifier that judges in it.
func (g *generation) receiptSearch(ctx context.Context) (*receipt.Search, error) {
	plan := g.search.Plan
	if plan.Verifier == "" && (plan.Method != scaling.SelfConsistency || plan.Select == scaling.SelectWeightedVote) {
		if plan.Verifier = g.search.Verifiers.Default; plan.Verifier == "" {
			plan.Verifier = scaling.VerifierLogprob
		}
	}
	out := &receipt.Search{}
	if judge, ok := g.search.Verifiers.ByName[plan.Verifier].(*reward.Scorer); ok {
		m, err := receiptModel(ctx, judge.Model())
		if err != nil {
			return nil, err
		}
		out.Verifier = &m
	}
	out.Plan = receipt.NewPlan(&plan)
	return out, nil
}
