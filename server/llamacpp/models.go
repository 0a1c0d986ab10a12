package llamacpp

import (
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/residency"
)

// change answers POST /models/load or /models/unload, as llama-server's router does: at once,
// while the model is loaded, or the requests that it has end.
func change(do func(*residency.Set, string) error) func(*api.Call) error {
	return func(c *api.Call) error {
		var name string
		c.Body.String("model", &name)
		if err := fields.Finish(c); err != nil {
			return err
		}
		models, err := c.Known(name)
		if err != nil {
			return err
		}
		if err := do(models, name); err != nil {
			return err
		}
		return c.JSON(map[string]bool{"success": true})
	}
}
