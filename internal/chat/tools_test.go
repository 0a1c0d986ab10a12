package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// toolFile is a file of tools.
func toolFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFilesOfToolsAndSchemasAreChecked(t *testing.T) {
	const good = `{"type":"function","function":{"name":"add","parameters":{"type":"object"}},"command":["cat"]}`
	tools, err := ReadTools(toolFile(t, "["+good+"]"))
	if err != nil || len(tools) != 1 || tools[0].Name != "add" || tools[0].Command[0] != "cat" || strings.Contains(string(tools[0].Definition), "command") {
		t.Errorf("%+v, %v", tools, err)
	}
	for text, want := range map[string]string{
		"{}":                                  "is no JSON list of tools",
		"[]":                                  "has 0 tools, want 1 to 128",
		"[1]":                                 "tool 1: it is no JSON object",
		"[" + good + "," + good + "]":         "tool 2: function.name: there are two tools",
		`[{"type":"function"}]`:               "tool 1: function: want an object",
		`[{"type":"mcp","function":{}}]`:      `type: want "function"`,
		`[{"type":"function","func":{}}]`:     `there is no field "func"; did you mean function?`,
		`[{"type":"function","function":{}}]`: "function.name: a name has",
		`[{"type":"function","function":{"name":"a"},"command":"rm -rf"}]`: "command: want a list of a program",
		`[{"type":"function","function":{"name":"a"},"command":[]}]`:       "command: want a list of a program",
		strings.Repeat(" ", MaxToolFile+1):                                 "more than",
	} {
		if _, err := ReadTools(toolFile(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{"[]": "is no JSON schema", "{": "is no JSON schema", strings.Repeat(" ", MaxToolFile+1): "more than"} {
		if _, err := ReadSchema(toolFile(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
	if err := (&Options{Schema: []byte("{}"), Tools: tools}).CheckTools(); err == nil {
		t.Error("an answer may be held to a schema and call tools")
	}
}
