package models

import "github.com/lutra-lm/lutra/models/recurrent"

// maxState bounds the numbers of a sequence's recurrent state: 4 GiB.
const maxState = 1 << 30

// recurrentShape reads the hyper-parameters of layers that have a recurrent state in place
// of keys and values: zero without any.
func (l *loader) recurrentShape() (s recurrent.Shape) {
	c, v := &l.cfg, &l.arch.attention
	switch {
	case l.Err() != nil:
	case v.deltaNets:
		s = l.deltaShape()
	case v.shortConvs:
		s = l.convShape()
	case v.stateSpaces || v.besideStates:
		s = l.stateSpaceShape()
	}
	for _, recurs := range l.recurs {
		if recurs {
			c.RecurrentLayers++
		}
	}
	layers := c.RecurrentLayers
	if v.besideStates {
		layers = c.Layers
	}
	if l.Err() == nil && (s.Channels() > maxDim || int64(s.Size())*int64(layers) > maxState) {
		l.Fail("a recurrent state of %d layers of %d numbers is too large", layers, s.Size())
	}
	if l.Err() != nil {
		return recurrent.Shape{}
	}
	c.State = s.Size() * layers
	return s
}
