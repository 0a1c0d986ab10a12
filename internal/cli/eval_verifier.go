package cli

import (
	"context"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/tts"
)

// embeddedVerifier runs the embedded reward model on r's pool. The caller
// calls stop when no search runs any more.
func embeddedVerifier(ctx context.Context, r *runtime, cfg Config) (v tts.Verifiers, stop func(), err error) {
	name := ""
	for _, e := range embedded.Models() {
		if e.Role == embedded.Reward {
			name = e.Name
		}
	}
	bundle, err := loadBundle(ModelConfig{Embedded: name}, models.LoadOptions{Pool: r.pool})
	if err != nil {
		return v, nil, err
	}
	bundle.Name = name
	opt := cfg.Engine
	opt.Pool, opt.Context = r.pool, bundle.Model.Config().Context
	kv, err := newKV(cfg, bundle.Model.Config(), &opt.Context)
	if err != nil {
		return v, nil, err
	}
	engine := batcher.New(bundle.Model, kv, opt)
	reward, err := tts.NewReward(tts.NewModel(bundle, engine), tts.Formats()[0])
	if err != nil {
		return v, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = engine.Run(ctx) }()
	v = tts.Verifiers{Default: name, ByName: map[string]tts.Scorer{name: reward}}
	return v, func() { cancel(); <-done; _ = bundle.Close() }, nil
}
