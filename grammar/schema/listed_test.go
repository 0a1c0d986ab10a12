package schema

import "testing"

func TestObjectsHaveTheListedPropertiesAloneUnlessTheSchemaSpeaksOfOthers(t *testing.T) {
	for _, c := range []struct {
		schema, instance string
		listed           bool // accepted of what lists properties
	}{
		{`{"properties": {"a": {}}}`, `{"a":1}`, true},
		{`{"properties": {"a": {}}}`, `{}`, true},
		{`{"properties": {"a": {}}}`, `{"b":1}`, false},
		{`{"properties": {"a": {}}}`, `{"a":1,"b":1}`, false},
		{`{"type": "object", "properties": {}}`, `{"b":1}`, false},
		{`{"type": "object"}`, `{"b":1}`, true},
		{`{"required": ["b"]}`, `{"b":1,"c":1}`, true},
		{`{"properties": {"a": {}}, "required": ["b"]}`, `{"a":1,"b":1}`, true},
		{`{"properties": {"a": {}}, "additionalProperties": true}`, `{"b":1}`, true},
		{`{"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}`, `{"b":1}`, true},
		{`{"properties": {"a": {}}, "patternProperties": {"^b": {}}}`, `{"b":1}`, true},
		{`{"properties": {"a": {}}, "propertyNames": {"maxLength": 1}}`, `{"b":1}`, true},
		{`{"properties": {"a": {}}, "unevaluatedProperties": {"type": "integer"}}`, `{"b":1}`, true},
		{`{"properties": {"a": {}}, "minProperties": 1}`, `{"b":1}`, true}, // none would be too few
		{`{"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}`, `{"a":1,"b":1}`, true},
		{`{"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}`, `{"c":1}`, false},
		{`{"allOf": [{"properties": {"a": {}}}, {"additionalProperties": true}]}`, `{"c":1}`, true},
		{`{"not": {"properties": {"a": {"const": 1}}, "required": ["a"]}}`, `{"c":1}`, true},
		{`{"properties": {"a": {"properties": {"b": {}}}}}`, `{"a":{"b":1}}`, true},
		{`{"properties": {"a": {"properties": {"b": {}}}}}`, `{"a":{"c":1}}`, false},
		{`{"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"properties": {"b": {}}}}}`, `{"a":{"c":1}}`, false},
	} {
		for _, o := range []Options{{}, {Listed: true}, {AnyOrder: true, Listed: true}} {
			g, err := Compile([]byte(c.schema), o)
			if err != nil {
				t.Errorf("%s: %v", c.schema, err)
				continue
			}
			s, n, err := g.Start().Read([]byte(c.instance))
			if got, want := err == nil && n == len(c.instance) && s.Accepts(), c.listed || !o.Listed; got != want {
				t.Errorf("%s: %s with %+v is accepted: %v, want %v (%v)", c.schema, c.instance, o, got, want, err)
			}
		}
	}
}
