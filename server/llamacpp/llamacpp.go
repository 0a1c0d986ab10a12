// Package llamacpp speaks the parts of llama.cpp's own API that clients ask for: completions, gaps to fill in, templates,
// properties, slots, models in memory, and adapters.
package llamacpp

import (
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/server/residency"
)

// Protocol returns the API.
func Protocol() api.Protocol {
	return api.Protocol{Routes: []api.Route{
		{Path: "/completion", Factor: api.CompletionFactor, Ask: complete},
		{Path: "/completions", Factor: api.CompletionFactor, Ask: complete}, // its former name
		{Path: "/infill", Factor: api.CompletionFactor, Ask: infill},
		{Path: "/props", Answer: props},
		{Path: "/slots", Answer: slots},
		{Path: "/slots/{id}", Factor: api.TemplateFactor, Answer: slotAction},
		{Path: "/apply-template", Factor: api.TemplateFactor, Answer: applyTemplate},
		{Path: "/lora-adapters", Answer: listAdapters},
		{Path: "/lora-adapters", Rules: true, Factor: api.TemplateFactor, List: api.LoraField, Answer: scaleAdapters},
		{Path: "/models", Answer: api.ListModels},
		{Path: "/models/load", Rules: true, Factor: api.TemplateFactor, Answer: change((*residency.Set).Load)},
		{Path: "/models/unload", Rules: true, Factor: api.TemplateFactor, Answer: change((*residency.Set).Unload)},
	}}
}

// applyTemplate answers POST /apply-template: the text that a model would read for messages.
func applyTemplate(c *api.Call) error {
	f := fields.Reader{Fields: c.Body}
	a, err := c.Model()
	if err != nil {
		return err
	}
	p, _ := f.Conversation()
	a.Model.Switch(&p)
	f.Tools(&p)
	f.Ignore("tool_choice") // no template reads it
	if err := fields.Finish(c); err != nil {
		return err
	}
	prepared, err := a.Prepare(c.Context(), &p)
	if err != nil {
		return err
	}
	return c.Reply(func(p *jsonwrite.Reply) {
		p.Raw(`{"prompt":`)
		p.Text(prepared.Text)
		report.WriteTruncation(p, prepared)
		p.Raw("}")
	})
}
