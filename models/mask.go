package models

import (
	"math"
	"math/bits"

	"github.com/lutra-lm/lutra/models/attention"
)

// attentionMask reads the mask of layers with a window; the others see all keys.
func (l *loader) attentionMask() attention.Mask {
	if l.Err() != nil {
		return attention.Mask{}
	}
	c, v, width := &l.cfg, &l.arch.attention, l.cfg.HeadDim
	if v.queryWidth != nil {
		width = v.queryWidth(c)
	}
	out := attention.Mask{Scale: float32(1 / math.Sqrt(float64(width)))}
	if l.arch.positions.alibi {
		out.Slopes = alibiSlopes(c.Heads)
	}
	if l.arch.multipliers != noMultipliers && l.positive("attention.scale") > 0 {
		out.Scale = l.multiplier("attention.scale")
	}
	gain, _ := l.latentGain()
	out.Scale *= float32(gain)
	if v.softCap {
		out.Cap = float32(l.positive("attn_logit_softcapping"))
	}
	if v.globalEvery > 0 {
		out.Window = l.count("attention.sliding_window", 0, 1<<30, 0)
		l.windows = l.windowPattern()
	}
	if v.bothSides && out.Window > 0 {
		out.Window, out.Both = out.Window/2+1, true
	}
	return out
}

// windowPattern reads which layers have a window: one truth value a layer, or every how
// many layers one has none.
func (l *loader) windowPattern() []bool {
	key, v := "attention.sliding_window_pattern", &l.arch.attention
	if list, ok := l.file.Metadata.Bools(l.key(key)); ok {
		if len(list) != l.cfg.Layers {
			l.Fail("%s has %d values for %d layers", l.key(key), len(list), l.cfg.Layers)
			return nil
		}
		return list
	}
	n := l.count(key, 1, maxLayers, v.globalEvery)
	windows, first := make([]bool, l.cfg.Layers), n-1
	if v.globalFirst {
		first = 0
	}
	for i := range windows {
		windows[i] = i%n != first
	}
	return windows
}

// windowed tells whether layer i sees a window of keys alone, if the model has any.
func (l *loader) windowed(i int) bool { return l.windows != nil && l.windows[i] }

// alibiSlopes returns the slopes of a number of heads: powers of 2^(-8/n) for the largest power of two
// n, and for further heads every other one of 2^(-4/n) (Press et al. 2022, §3).
func alibiSlopes(heads int) []float32 {
	n := 1 << (bits.Len(uint(heads)) - 1)
	slopes := make([]float32, heads)
	for i := range slopes {
		exponent := -8 * float64(i+1) / float64(n)
		if i >= n {
			exponent = -4 * float64(2*(i-n)+1) / float64(n)
		}
		slopes[i] = float32(math.Exp2(exponent))
	}
	return slopes
}
