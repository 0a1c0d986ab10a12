package engines

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/server/registry"
)

// loadAdapters loads the adapters of a model's configuration.
func (h *Host) loadAdapters(ctx context.Context) error {
	if len(h.Config.Adapters) == 0 {
		return nil
	}
	if h.Bundle.Task() == models.TaskReward {
		return fmt.Errorf("adapters: the model scores answers; only models that write, embed or rank texts take adapters")
	}
	h.Adapters = &registry.Adapters{}
	for _, c := range h.Config.Adapters {
		a, err := h.Bundle.LoadAdapter(c.APIName(), c.Path, Until(ctx))
		if err != nil {
			return fmt.Errorf("adapter %s: %w", c.APIName(), err)
		}
		h.adapters = append(h.adapters, a)
		a.Scale = c.Factor()
		h.Adapters.List = append(h.Adapters.List, models.Use{Adapter: a, Scale: a.Scale})
	}
	return nil
}

// Adapt has each model's adapters change all that it is asked, at the scales of the configuration:
// for commands whose requests choose none.
func (r *Runtime) Adapt() error {
	for _, h := range r.All() {
		if h.Adapters == nil {
			continue
		}
		m, err := h.Model.With(h.Adapters.List...)
		if err != nil {
			return fmt.Errorf("model %s: %w", h.Bundle.Name, err)
		}
		h.Model = m
		if err := h.giveTask(); err != nil {
			return fmt.Errorf("model %s: %w", h.Bundle.Name, err)
		}
	}
	return nil
}

// adapting returns the memory that adapters take.
func (h *Host) adapting() (bytes int64) {
	for _, a := range h.adapters {
		bytes += a.Bytes
	}
	return bytes
}

// adapterSize returns about the memory that an adapter will take: what its file has.
func adapterSize(a config.Adapter) int64 {
	path := a.Path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "adapter_model.safetensors")
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0 // loading says so
	}
	return info.Size()
}
