package models

import (
	"github.com/lutra-lm/lutra/models/load"
	"github.com/lutra-lm/lutra/models/recurrent"
)

// stateKind says what layers with a recurrent state are.
type stateKind uint8

const (
	noStates     stateKind = iota
	deltaNets              // gated delta nets, but for every so many layers, full_attention_interval
	shortConvs             // layers without KV heads are short convolutions
	stateSpaces            // layers without KV heads are selective state spaces
	besideStates           // every layer has a state space beside its attention
)

// stateKinds read and load them.
var stateKinds = [...]struct {
	read func(h *load.Header, m *spec) recurrent.Shape
	load func(t *tensors, m *spec, y *layerSpec) mixer // in place of attention; nil: beside it
}{
	deltaNets:    {readDelta, loadDelta},
	shortConvs:   {readShortConv, loadShortConv},
	stateSpaces:  {readStateSpace, loadStateSpaceAlone},
	besideStates: {readStateSpace, nil},
}

// maxState bounds the numbers of a sequence's recurrent state: 4 GiB.
const maxState = 1 << 30

// readStates reads the hyper-parameters of recurrent states, if layers have any.
func readStates(h *load.Header, m *spec) {
	kind := m.arch.states.kind
	if kind == noStates {
		return
	}
	s := stateKinds[kind].read(h, m)
	for i := range m.layers {
		if y := &m.layers[i]; y.recurs {
			y.state = m.RecurrentLayers
			m.RecurrentLayers++
		}
	}
	layers := m.RecurrentLayers
	if kind == besideStates {
		layers = m.Layers
		for i := range m.layers {
			m.layers[i].state = i
		}
	}
	if h.Err() == nil && (s.Channels() > load.MaxDim || int64(s.Size())*int64(layers) > maxState) {
		h.Fail("a recurrent state of %d layers of %d numbers is too large", layers, s.Size())
	}
	if h.Err() == nil {
		m.states, m.State, m.GuessBytes = s, s.Size()*layers, s.GuessBytes(layers)
	}
}
