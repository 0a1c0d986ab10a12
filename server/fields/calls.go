package fields

import "encoding/json"

// Call is a call of a tool as templates have it.
type Call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // an object: what the template wants is made of it
	} `json:"function"`
}

// Written writes a call for a message of a prompt.
func Written(id, name, arguments string) json.RawMessage {
	c := Call{ID: id, Type: "function"}
	c.Function.Name, c.Function.Arguments = name, arguments
	raw, _ := json.Marshal(c) // strings
	return raw
}
