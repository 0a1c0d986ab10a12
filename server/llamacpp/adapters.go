package llamacpp

import (
	"path/filepath"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/registry"
)

// adapter is an entry of GET /lora-adapters, as llama-server has it, with a name and a rank.
type adapter struct {
	ID    int     `json:"id"`
	Path  string  `json:"path"`
	Scale float32 `json:"scale"`
	Name  string  `json:"name"`
	Rank  int     `json:"rank"`
}

// adaptedModel returns the model that ?model= names, by default the first.
func adaptedModel(c *api.Call) (*registry.Model, error) {
	name := c.URL.Query().Get("model")
	models, err := c.Hold(c, name)
	if err != nil {
		return nil, err
	}
	m, _, err := models.Find(name)
	if err == nil && m.Parent() != nil {
		m = m.Parent()
	}
	return m, err
}

// listAdapters answers GET /lora-adapters: the adapters of a model, with the scales of requests
// that name the model and no scales.
func listAdapters(c *api.Call) error {
	m, err := adaptedModel(c)
	if err != nil {
		return err
	}
	list := []adapter{}
	if m.Adapters != nil {
		for i, scale := range m.Adapters.Scales() {
			a := m.Adapters.List[i].Adapter
			list = append(list, adapter{i, filepath.Base(a.Path), scale, a.Name, a.Rank})
		}
	}
	return c.JSON(list)
}

// scaleAdapters answers POST /lora-adapters, a list of [{"id": 0, "scale": 0.5}]: it sets these
// scales for requests to come.
func scaleAdapters(c *api.Call) error {
	m, err := adaptedModel(c)
	if err != nil {
		return err
	}
	scales, err := api.Scales(c.Body, m)
	if err != nil {
		return err
	}
	if err := fields.Finish(c); err != nil {
		return err
	}
	if m.Adapters != nil {
		m.Adapters.SetScales(scales)
	}
	return c.JSON(map[string]bool{"success": true})
}
