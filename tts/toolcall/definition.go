package toolcall

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// definition has the fields of an offered tool that this package reads.
type definition struct {
	Function struct {
		Name       string          `json:"name"`
		Strict     bool            `json:"strict"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// parameters has the keywords that are read of a schema of arguments.
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

// Normalize returns tools as templates read them: of the same tool they get the same
// text, whichever API it came through and however a client wrote it. A function has
// its name, its description and its parameters, in this order, and then what else it
// has, sorted. Empty descriptions and strict, which the model need not know, are left
// out.
func Normalize(tools []any) ([]any, error) {
	out := make([]any, len(tools))
	for i, tool := range tools {
		raw, err := json.Marshal(tool)
		if err != nil {
			return nil, err
		}
		var whole struct {
			Function map[string]json.RawMessage `json:"function"`
		}
		if err := json.Unmarshal(raw, &whole); err != nil {
			return nil, err
		}
		fn := whole.Function
		delete(fn, "strict")
		maps.DeleteFunc(fn, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
		if string(fn["description"]) == `""` {
			delete(fn, "description")
		}
		rest := slices.Sorted(maps.Keys(fn))
		rest = slices.DeleteFunc(rest, func(name string) bool { return slices.Contains(shownFirst, name) })
		b := bytes.NewBufferString(`{"type":"function","function":{`)
		begin := b.Len()
		for _, name := range append(slices.Clone(shownFirst), rest...) {
			value, ok := fn[name]
			if !ok {
				continue
			}
			if b.Len() > begin {
				b.WriteByte(',')
			}
			key, err := json.Marshal(name)
			if err != nil {
				return nil, err
			}
			b.Write(key)
			b.WriteByte(':')
			b.Write(value)
		}
		b.WriteString("}}")
		out[i] = json.RawMessage(b.Bytes())
	}
	return out, nil
}

// shownFirst are the fields of a function that every API has.
var shownFirst = []string{"name", "description", "parameters"}
