package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// Call is a call of a tool, as OpenAI's API has it.
type Call struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function Function `json:"function"`
}

// Function is the function that a call names.
type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON
}

func newCall(id, name, arguments string) Call {
	return Call{id, "function", Function{name, arguments}}
}

// Tool is a function that a model may call.
type Tool struct {
	Definition json.RawMessage // as OpenAI's API has it
	Name       string
	Command    []string // what carries out a call: a program and its arguments; nil: the user does
}

// Bounds of tools and schemas.
const (
	MaxToolFile = 1 << 20 // bytes of a file of tools or of a schema
	maxTools    = 128
	maxWords    = 64 // of a command
	mostCalls   = 64 // of one answer
)

// ReadTools reads a file of tools: OpenAI's list, in which a tool may have a command.
func ReadTools(path string) ([]Tool, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, usage.Errorf("%s is no JSON list of tools: %w", path, err)
	}
	if len(list) == 0 || len(list) > maxTools {
		return nil, usage.Errorf("%s has %d tools, want 1 to %d", path, len(list), maxTools)
	}
	var tools []Tool
	var definitions []any
	for i, raw := range list {
		t, err := readTool(raw)
		if err != nil {
			return nil, usage.Errorf("%s: tool %d: %w", path, i+1, err)
		}
		tools, definitions = append(tools, t), append(definitions, t.Definition)
	}
	known, fault := toolcall.Definitions(definitions)
	if fault != nil {
		return nil, usage.Errorf("%s: tool %d: function%s: %s", path, fault.Index+1, fault.Field, fault.Message)
	}
	for i := range tools {
		tools[i].Name = known[i].Name
	}
	return tools, nil
}

func readTool(raw json.RawMessage) (t Tool, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return t, errors.New("it is no JSON object")
	}
	for name := range fields {
		if known := []string{"type", "function", "command"}; !slices.Contains(known, name) {
			return t, fmt.Errorf("there is no field %q%s", usage.Brief(name), usage.DidYouMean(name, known))
		}
	}
	var kind string
	if json.Unmarshal(fields["type"], &kind) != nil || kind != "function" {
		return t, errors.New(`type: want "function"`)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(fields["function"]), []byte("{")) {
		return t, errors.New("function: want an object with name, description and parameters")
	}
	if command, ok := fields["command"]; ok {
		if err := json.Unmarshal(command, &t.Command); err != nil || len(t.Command) == 0 || len(t.Command) > maxWords || t.Command[0] == "" {
			return t, fmt.Errorf("command: want a list of a program and its arguments, of 1 to %d texts", maxWords)
		}
	}
	t.Definition, err = json.Marshal(map[string]json.RawMessage{"type": fields["type"], "function": fields["function"]})
	return t, err
}

// ReadSchema reads a JSON schema, for Options.Schema.
func ReadSchema(path string) (json.RawMessage, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	if !json.Valid(data) || !strings.HasPrefix(strings.TrimSpace(string(data)), "{") {
		return nil, usage.Errorf("%s is no JSON schema: want an object", path)
	}
	return data, nil
}

// errToolsAndSchema says why only one of both is possible.
var errToolsAndSchema = errors.New("an answer that is held to a schema can call no tools")

// CheckTools checks that tools and schema go together.
func (o *Options) CheckTools() error {
	if o.Schema != nil && len(o.Tools) > 0 {
		return errToolsAndSchema
	}
	return nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, usage.Errorf("there is no file %s", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxToolFile+1))
	if err == nil && len(data) > MaxToolFile {
		err = fmt.Errorf("%s has more than %d bytes", path, MaxToolFile)
	}
	return data, err
}
