package models

import (
	"math"
	"math/bits"

	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/load"
)

// readMask reads the mask of layers with a window, and which they are; the others see all keys.
func readMask(h *load.Header, m *spec) {
	if m.arch.attention.none {
		return
	}
	width, mask := m.HeadDim, &m.mask
	if of := m.arch.attention.queryWidth; of != nil {
		width = of(m)
	}
	mask.Scale = float32(1 / math.Sqrt(float64(width)))
	if m.arch.positions.alibi {
		mask.Slopes = alibiSlopes(m.Heads)
	}
	if m.arch.multipliers != noMultipliers && h.NotNegative("attention.scale") > 0 {
		mask.Scale = h.Factor("attention.scale", 1)
	}
	gain, _ := latentGain(h, m)
	mask.Scale *= float32(gain)
	if m.arch.attention.softCap {
		mask.Cap = float32(h.NotNegative("attn_logit_softcapping"))
	}
	if m.arch.windows.globalEvery > 0 {
		mask.Window = h.Int("attention.sliding_window", 0, load.MaxContext, 0)
		readWindows(h, m)
	}
	if m.arch.windows.bothSides && mask.Window > 0 {
		mask.Window, mask.Both = mask.Window/2+1, true
	}
}

// readWindows reads which layers have a window: one truth value a layer, or every how
// many layers one has none.
func readWindows(h *load.Header, m *spec) {
	const key = "attention.sliding_window_pattern"
	if list, ok := h.File.Metadata.Bools(h.Key(key)); ok {
		if len(list) != m.Layers {
			h.Fail("%s has %d values for %d layers", h.Key(key), len(list), m.Layers)
			return
		}
		for i, window := range list {
			m.layers[i].window = window
		}
		return
	}
	n := h.Int(key, 1, load.MaxLayers, m.arch.windows.globalEvery)
	global := n - 1
	if m.arch.windows.globalFirst {
		global = 0
	}
	for i := range m.layers {
		m.layers[i].window = i%n != global
	}
}

// maskOf returns the mask of a layer.
func (m *spec) maskOf(y *layerSpec) attention.Mask {
	mask := m.mask
	if !y.window {
		mask.Window, mask.Both = 0, false
	}
	return mask
}

// alibiSlopes returns the slopes of a number of heads. They are powers of 2^(-8/n) for the largest power of two
// n, and for further heads every other power of 2^(-4/n) (Press et al. 2022, §3).
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
