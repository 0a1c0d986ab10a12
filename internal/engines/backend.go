package engines

import (
	"errors"
	"fmt"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/models"
)

// LoadOn has load make a model whose matrices and attention are computed by the
// backend of that name; empty: the CPU.
func LoadOn(name string, h config.Hexagon, opt models.LoadOptions, load func(models.LoadOptions) (*models.Bundle, error)) (*models.Bundle, error) {
	if name == "" || name == config.CPU {
		return load(opt)
	}
	use, err := h.Options()
	if err != nil {
		return nil, err
	}
	use.Pool = opt.Pool
	b, err := hexagon.Open(name, use)
	if err != nil {
		return nil, err
	}
	opt.Backend, opt.Spare = b, h.Spare()
	bundle, err := load(opt)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	if err := b.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the backend %s: %w", name, err), bundle.Close())
	}
	return bundle, nil
}

// logBackend says what of a model runs where, if it is not all on the CPU.
func logBackend(r *Runtime, h *Host) {
	b, ok := h.Bundle.Backend().(*hexagon.Backend)
	if !ok {
		return
	}
	cfg := h.Bundle.Model.Config()
	event := r.log.Info().Str("model", h.Bundle.Name).Str("backend", b.Name()).Str("memory", output.Bytes(b.Memory())).
		Str("weights", fmt.Sprintf("%.0f %%", 100*float64(cfg.Sent)/float64(max(1, cfg.Params)))).Str("path", r.cfg.Hexagon.Path).Str("fallback", r.cfg.Hexagon.Fallback)
	if cfg.Experts > 0 {
		event = event.Str("placement", r.cfg.Hexagon.Placement).Str("plan", r.cfg.Hexagon.Plan)
	}
	if packings := b.Refused(); len(packings) > 0 {
		event = event.Strs("refused", packings).Str("round", r.cfg.Hexagon.Round)
	}
	if why := hexagon.Reasons(b.Refusals()); len(why) > 0 {
		event = event.Strs("on_the_host", why)
	}
	event.Msg("the device computes attention and products of this share of the weights; the CPU does the rest")
}
