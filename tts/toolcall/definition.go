package toolcall

import (
	"encoding/json"
	"slices"
)

// definition is what is read of a tool that a request offers.
type definition struct {
	Function struct {
		Name       string          `json:"name"`
		Strict     bool            `json:"strict"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// parameters is what is read of a schema of arguments.
type parameters struct {
	Properties map[string]struct {
		Type json.RawMessage `json:"type"`
	} `json:"properties"`
}

// DefinitionError says what is wrong with a tool.
type DefinitionError struct {
	Index   int
	Field   string // of its function, with a dot; empty: it is of another type than a function has
	Message string
}

// Definitions reads tools as OpenAI's API has them: JSON in json.RawMessage.
func Definitions(tools []any) ([]Tool, *DefinitionError) {
	var list []Tool
	for i, raw := range tools {
		var d definition
		text, _ := raw.(json.RawMessage)
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, &DefinitionError{i, "", "its parameters are no JSON schema of an object"}
		}
		fn := &d.Function
		switch {
		case !ValidName(fn.Name):
			return nil, &DefinitionError{i, ".name", "a name has 1 to 64 letters, digits, dots, underscores and dashes"}
		case slices.ContainsFunc(list, func(t Tool) bool { return t.Name == fn.Name }):
			return nil, &DefinitionError{i, ".name", "there are two tools of this name"}
		}
		if string(fn.Parameters) == "null" {
			fn.Parameters = nil
		}
		var p parameters
		if fn.Parameters != nil && json.Unmarshal(fn.Parameters, &p) != nil {
			return nil, &DefinitionError{i, "", "its parameters are no JSON schema of an object"}
		}
		list = append(list, Tool{Name: fn.Name, Schema: fn.Parameters, Strict: fn.Strict, Text: func(argument string) bool {
			a, ok := p.Properties[argument]
			return !ok || string(a.Type) == `"string"`
		}})
	}
	return list, nil
}
