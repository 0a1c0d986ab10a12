package api

import (
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/registry"
)

// LoraField is llama.cpp's name for the adapters of a request, and their scales.
const LoraField = "lora"

// adapted returns the model with the adapters that a request asks for: at the scales of its
// field, or without that, as all requests for the model get it.
func adapted(c *Call, m *registry.Model) (*registry.Model, error) {
	f := c.Body
	switch {
	case m.Adapters == nil: // a field that asks for some is refused as one that nobody knows
		return m, nil
	case !f.Has(LoraField):
		return m.WithDefaultScales()
	}
	scales, err := Scales(f, m)
	if err != nil {
		return nil, err
	}
	models, err := c.Models()
	if err != nil {
		return nil, err
	}
	for i, u := range m.Adapters.List {
		if scales[i] != 0 {
			if err := c.Access(models, m.Name+registry.AdapterMark+u.Adapter.Name); err != nil {
				return nil, err
			}
		}
	}
	return m.Scaled(scales)
}

// Scales reads a request's field of adapters, [{"id": 0, "scale": 0.5}], as one scale for each adapter of m.
// Adapters that it does not list have 0.
func Scales(f *jsonread.Fields, m *registry.Model) ([]float32, error) {
	n := 0
	if m.Adapters != nil {
		n = len(m.Adapters.List)
	}
	scales, seen := make([]float32, n), make([]bool, n)
	for _, o := range f.Each(LoraField, max(n, 1)) {
		id, scale := -1, float32(0)
		o.Int("id", &id, 0, 1<<20)
		o.Float32("scale", &scale, -registry.MaxScale, registry.MaxScale)
		switch {
		case o.Err != nil:
		case id < 0:
			o.Fail(jsonread.CodeMissing, "id", "it is missing.")
		case id >= n:
			o.Fail(jsonread.CodeValue, "id", "the model has %d adapters; GET /lora-adapters lists them.", n)
		case seen[id]:
			o.Fail(jsonread.CodeValue, "id", "%d is there twice.", id)
		default:
			scales[id], seen[id] = scale, true
		}
		if o.Err != nil {
			return nil, o.Err
		}
	}
	switch {
	case f.Err != nil:
	case m.Parent() != nil:
		f.Fail(jsonread.CodeValue, LoraField, "the model's name asks for an adapter already; leave one of them out.")
	}
	return scales, f.Err
}
