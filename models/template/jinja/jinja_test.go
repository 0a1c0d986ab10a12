package jinja

import (
	"encoding/json"
	"os"
	"testing"
)

func TestTemplatesRenderAsJinja2RendersThem(t *testing.T) {
	data, err := os.ReadFile("testdata/jinja2.json") // written by testdata/make.py
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Vars  json.RawMessage
		Cases []struct{ Template, Text, Error string }
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	for _, c := range golden.Cases {
		vars, err := FromJSON(golden.Vars)
		if err != nil {
			t.Fatal(err)
		}
		all := make(map[string]any)
		for i, k := range vars.(*Dict).keys {
			all[k.(string)] = vars.(*Dict).values[i]
		}
		text := ""
		tmpl, err := Parse(c.Template)
		if err == nil {
			text, err = tmpl.Render(t.Context(), all, DefaultLimits())
		}
		switch {
		case c.Error != "" && err == nil:
			t.Errorf("%q: rendered %q, want an error like %q", c.Template, text, c.Error)
		case c.Error == "" && (err != nil || text != c.Text):
			t.Errorf("%q:\n got %q, %v\nwant %q", c.Template, text, err, c.Text)
		}
	}
}
