package engines

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv/offload"
)

// attachDisk has a model's engine keep prefixes in files, if the configuration says where. A verifier's texts are not asked
// about again, and what a device computes may depend on what else is in a step.
func (h *Host) attachDisk(folder *offload.Folder, opt *batcher.Options, log zerolog.Logger) {
	if folder == nil || h.Reward != nil || h.Bundle.Task() != models.TaskGenerate || h.Bundle.Identity == nil {
		return
	}
	if h.Bundle.Backend() != nil {
		log.Warn().Str("model", opt.Name).Msg("kv.disk keeps no prefixes of models on a device")
		return
	}
	id, shape := h.Bundle.Identity, h.Bundle.Model.Config()
	h.disk = offload.New(folder, h.caches[0], offload.Sources{
		About:   offload.About{Model: opt.Name, KV: h.caches[0].Type().String(), Kernels: id.Kernels()},
		Options: fmt.Sprintf("packings %s, metadata %s, context %d", id.Packings(), id.Metadata(), shape.Context),
		State:   id.State(),
		Digest: func(ctx context.Context) (string, error) {
			return id.Digest(ctx, func(ctx context.Context) (func(), error) { return func() {}, context.Cause(ctx) })
		},
	})
	opt.Disk = h.disk
	h.buffers += offload.MostQueued
}
