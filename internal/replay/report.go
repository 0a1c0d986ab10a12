package replay

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/server/receipt"
)

// mostPlaces bounds the places that Report describes.
const mostPlaces = 16

// Report writes a verdict on answers that can be compared, in words. Tokens are spelt by
// the replica.
func Report(ctx context.Context, w io.Writer, was *receipt.Receipt, v *receipt.Verdict, r *Replica) {
	of := counted(v.Choices, "choice")
	if v.Candidates > 0 {
		of += ", " + counted(v.Candidates, "candidate")
	}
	of += ", " + counted(v.Tokens, "token")
	model := output.WithoutControls(was.Model.Name)
	if v.Same() {
		fmt.Fprintf(w, "same: %s of %s (sha256 %s) on %s\n", of, model, was.Model.SHA256[:12], output.WithoutControls(was.Kernels))
		return
	}
	name := r.Model
	if name == "" {
		name = was.Model.Name
	}
	for i, p := range v.Where {
		if i == mostPlaces {
			fmt.Fprintf(w, "and %d more\n", len(v.Where)-i)
			break
		}
		fmt.Fprintf(w, "differs: %s\n", place(ctx, p, severalPrompts(was), r, name))
	}
	fmt.Fprintf(w, "compared: %s of %s\n", of, model)
	for _, n := range v.Notes {
		fmt.Fprintf(w, "note: %s\n", output.WithoutControls(n))
	}
}

// counted returns a number of things.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// place describes where a choice or a candidate parts.
func place(ctx context.Context, p receipt.Place, prompts bool, r *Replica, model string) string {
	what := fmt.Sprintf("choice %d", p.Index)
	if p.Candidate {
		what = fmt.Sprintf("candidate %d", p.Index)
		if prompts {
			what += fmt.Sprintf(" of prompt %d", p.Prompt)
		}
	}
	if p.Token < 0 {
		return what + ": " + output.WithoutControls(p.Why)
	}
	token := func(id int32) string {
		if id < 0 {
			return "no more"
		}
		if text := r.spell(ctx, model, id); text != nil {
			return fmt.Sprintf("%q (%d)", *text, id)
		}
		return fmt.Sprint(id)
	}
	text := fmt.Sprintf("%s, token %d: %s there, %s here", what, p.Token, token(p.Was), token(p.Now))
	if len(p.Before) > 0 {
		if behind := r.spell(ctx, model, p.Before...); behind != nil {
			text += ", behind " + strings.ToValidUTF8(strconv.Quote(*behind), "")
		}
	}
	return text
}

// severalPrompts tells whether candidates belong to several prompts.
func severalPrompts(r *receipt.Receipt) bool {
	for _, c := range r.Candidates {
		if c.Prompt > 0 {
			return true
		}
	}
	return false
}
