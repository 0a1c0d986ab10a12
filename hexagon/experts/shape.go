package experts

import (
	"errors"
	"fmt"
)

// Shape describes the mixtures of a model to which a calibration or a plan belongs.
type Shape struct {
	Model   string `json:"model"`  // its name, for people: models of one shape may have several
	Layers  int    `json:"layers"` // all of which are mixtures
	Experts int    `json:"experts"`
	Chosen  int    `json:"chosen"` // how many of the experts a token takes
	Hidden  int    `json:"hidden"`
	Width   int    `json:"width"` // of what an expert's gate and up make
}

// Bounds of what a file may say.
const (
	mostLayers  = 1 << 10
	mostExperts = 1 << 12
	mostOfAll   = 1 << 17 // experts of all layers
	mostWidth   = 1 << 20
	MostName    = 256     // bytes
	MostChunk   = 1 << 14 // tokens of a chunk
	mostSets    = 16      // data sets that a plan is checked on
)

// Check reports a shape that no model has.
func (s Shape) Check() error {
	switch {
	case len(s.Model) > MostName:
		return fmt.Errorf("a model's name of %d bytes", len(s.Model))
	case s.Layers < 1 || s.Layers > mostLayers || s.Experts < 1 || s.Experts > mostExperts || s.Layers*s.Experts > mostOfAll:
		return fmt.Errorf("%d layers of %d experts are outside 1 to %d layers of 1 to %d, %d in all", s.Layers, s.Experts, mostLayers, mostExperts, mostOfAll)
	case s.Chosen < 1 || s.Chosen > s.Experts:
		return fmt.Errorf("%d of %d experts are chosen", s.Chosen, s.Experts)
	case s.Hidden < 1 || s.Hidden > mostWidth || s.Width < 1 || s.Width > mostWidth:
		return fmt.Errorf("experts of %d by %d numbers are outside 1 to %d", s.Hidden, s.Width, mostWidth)
	}
	return nil
}

// Fits reports how a model differs from the one that s is of. Its name may.
func (s Shape) Fits(model Shape) error {
	for _, x := range []struct {
		what       string
		have, want int
	}{
		{"layers", s.Layers, model.Layers}, {"experts a layer", s.Experts, model.Experts}, {"experts a token", s.Chosen, model.Chosen},
		{"numbers a token", s.Hidden, model.Hidden}, {"numbers within an expert", s.Width, model.Width},
	} {
		if x.have != x.want {
			return fmt.Errorf("it is for %d %s, and the model %s has %d", x.have, x.what, model.Model, x.want)
		}
	}
	return nil
}

// ErrOptions says that nothing can be counted or planned as it was asked for.
var ErrOptions = errors.New("experts: bad options")
