package config

import (
	"maps"
	"strconv"

	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models"
)

// RopeScaling extends the context of models beyond what they were made for, as flags with llama.cpp's names say.
// The zero value leaves it to their files.
type RopeScaling struct {
	Type     string  // none, linear or yarn
	Factor   float64 // times the original context
	Original int     // tokens; 0: as the file says
}

// ScalingTypes are the types of a RopeScaling.
func ScalingTypes() []string { return []string{"none", "linear", "yarn"} }

// Metadata returns md, a model's, with the scaling.
func (r RopeScaling) Metadata(md map[string]string) (map[string]string, error) {
	switch {
	case r == RopeScaling{}:
		return md, nil
	case r.Type == "":
		return md, usage.Errorf("--rope-scale and --yarn-orig-ctx need --rope-scaling yarn or linear")
	case r.Type != "none" && !(r.Factor >= 1):
		return md, usage.Errorf("--rope-scaling %s needs --rope-scale with a number from 1 on, not %v", r.Type, r.Factor)
	case r.Original < 0:
		return md, usage.Errorf("--yarn-orig-ctx: %d is negative", r.Original)
	}
	if md = maps.Clone(md); md == nil {
		md = map[string]string{}
	}
	md[models.KeyScaling] = r.Type
	if r.Factor != 0 {
		md[models.KeyScalingFactor] = strconv.FormatFloat(r.Factor, 'g', -1, 64)
	}
	if r.Original != 0 {
		md[models.KeyScalingOriginal] = strconv.Itoa(r.Original)
	}
	return md, nil
}
