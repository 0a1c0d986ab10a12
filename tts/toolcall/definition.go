package toolcall

import (
	"encoding/json"
	"slices"
)

// definition is what is read of a tool that a request offers.
type definition struct {
	Function struct {
		Name       string `json:"name"`
		Strict     bool   `json:"strict"`
		Parameters struct {
			Properties map[string]struct {
				Type json.RawMessage `json:"type"`
			} `json:"properties"`
		} `json:"parameters"`
	} `json:"function"`
}

// DefinitionError says what is wrong with a tool.
type DefinitionError struct {
	Index   int
	Field   string // of its function, with a dot; empty: all of it
	Kind    DefinitionFault
	Message string
}

// DefinitionFault is what kind of fault a definition has.
type DefinitionFault uint8

// The kinds.
const (
	WrongType DefinitionFault = iota
	WrongValue
	NotSupported
)

// Definitions reads tools as OpenAI's API has them: JSON in json.RawMessage.
func Definitions(tools []any) ([]Tool, *DefinitionError) {
	var list []Tool
	for i, raw := range tools {
		var d definition
		text, _ := raw.(json.RawMessage)
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, &DefinitionError{i, "", WrongType, "its parameters are no JSON schema of an object"}
		}
		fn := &d.Function
		switch {
		case !ValidName(fn.Name):
			return nil, &DefinitionError{i, ".name", WrongValue, "a name has 1 to 64 letters, digits, dots, underscores and dashes"}
		case slices.ContainsFunc(list, func(t Tool) bool { return t.Name == fn.Name }):
			return nil, &DefinitionError{i, ".name", WrongValue, "there are two tools of this name"}
		case fn.Strict:
			return nil, &DefinitionError{i, ".strict", NotSupported, "this server does not hold arguments to their schema"}
		}
		list = append(list, Tool{Name: fn.Name, Text: func(argument string) bool {
			p, ok := fn.Parameters.Properties[argument]
			return !ok || string(p.Type) == `"string"`
		}})
	}
	return list, nil
}
