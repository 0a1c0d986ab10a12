package engines

import (
	"errors"
	"fmt"
	"os"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/probe"
)

// openProbe reads the probe that a verifier is; nil: it is a reward model.
func (l *loader) openProbe(v config.Verifier) (*probe.Probe, error) {
	m := v.Model()
	f, err := probeFile(v, m)
	if f == nil {
		return nil, err
	}
	p, err := probe.Parse(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	}
	p.Name = m.APIName()
	if !v.IsProbe() {
		size := sizeOf(m.Path)
		l.tell(m, size, size)
	}
	return p, nil
}

// probeFile opens a verifier's file if it holds a probe, or is said to.
func probeFile(v config.Verifier, m config.Model) (*gguf.File, error) {
	switch {
	case m.Embedded != "" && v.IsProbe():
		return embedded.Open(m.Embedded)
	case m.Embedded != "":
		return nil, nil
	}
	if info, err := os.Stat(m.Path); err == nil && info.IsDir() && v.Probe == "" {
		return nil, nil
	}
	f, err := gguf.Open(m.Path)
	switch {
	case err != nil && v.Probe == "":
		return nil, nil // loading a model says what is wrong
	case err != nil:
		return nil, err
	case v.Probe == "" && !probe.Is(f):
		return nil, f.Close()
	}
	return f, nil
}

// checkProbes fails if a probe reads the states of no model that may be loaded. The embedded ones
// may: other models than the embedded ones are served.
func checkProbes(r *Runtime) error {
	for _, p := range r.probes {
		var misfit error
		for _, h := range r.Hosts {
			shape := h.Bundle.Model.Config()
			if misfit = p.Of.Fits(&shape); misfit == nil {
				break
			}
		}
		switch {
		case misfit == nil:
		case config.Verifier{Embedded: p.Name}.IsProbe(), r.cfg.Partial:
			r.log.Info().Str("verifier", p.Name).Str("of", p.Of.Name).Msg("not used: its model is not loaded")
		default:
			return fmt.Errorf("verifier %s: %w", p.Name, misfit)
		}
	}
	return nil
}

// attachProbes has the engine of a model read what its probes want to know. The embedded ones are not for
// models on accelerators, which compute whole layers only where nobody reads states.
func (r *Runtime) attachProbes(h *Host, opt *batcher.Options) {
	shape := h.Bundle.Model.Config()
	if !shape.Generates() {
		return
	}
	if r.watch.Probe != nil {
		opt.Probe = r.watch.Probe(&shape)
		return
	}
	var list []*probe.Probe
	for _, p := range r.probes {
		if embedded := (config.Verifier{Embedded: p.Name}).IsProbe(); embedded && r.cfg.BackendOf(h.Config) != config.CPU {
			continue
		}
		if p.Of.Fits(&shape) == nil {
			list = append(list, p)
		}
	}
	opt.Probe = probe.Read(list)
	for _, s := range probe.Scorers(list) {
		h.Model.Probes = append(h.Model.Probes, tts.NamedScorer{Name: s.Name, Scorer: s})
	}
}
