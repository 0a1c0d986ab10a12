package commands

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func schemaCommand(args ...string) (string, error) {
	var out bytes.Buffer
	root := Command(&out, io.Discard)
	root.SetArgs(append([]string{"schema"}, args...))
	err := root.Execute()
	return out.String(), err
}

func TestASchemaCheckNamesTheTokenThatIsRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	object := file("object.json", `{"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": false}`)
	listed := file("listed.json", `{"properties": {"a": {}}}`)
	for _, c := range []struct{ schema, instance, says string }{
		{listed, `{"b":1}`, `may stand: "a\":"`},
		{object, `{"a":1}`, "accepted"},
		{object, `{"a":2}`, `"2", is refused at byte 5, where may stand: ' ', '1'`},
		{object, `{"a":1`, "ends too early"},
		{file("unknown.json", `{"type": "array", "uniqueItems": true}`), `[]`, "uniqueItems"},
		{file("broken.json", `{`), `[]`, "EOF"},
	} {
		out, err := schemaCommand("check", c.schema, file("instance.json", c.instance))
		if err != nil {
			out += err.Error()
		}
		if !strings.Contains(out, c.says) {
			t.Errorf("%s: %s, want %s", c.instance, out, c.says)
		}
	}
	if out, err := schemaCommand("check", "--any-properties", listed, file("instance.json", `{"b":1}`)); err != nil || !strings.Contains(out, "accepted") {
		t.Errorf("with any properties: %s, %v", out, err)
	}
}

func TestASchemaBenchCountsWhatIsRightAndWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.json": `{"schema": {"type": "integer"}, "tests": [{"valid": true, "data": 7}, {"valid": false, "data": "7"}]}`,
		"b.json": `{"schema": {"type": "array", "uniqueItems": true}, "tests": []}`,
		"c.json": `{"schema": {"properties": {"a": {}, "b": {}}}, "tests": [{"valid": true, "data": {"b": ["é", null], "a": {"x": false}}}]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		flags []string
		says  string
	}{
		{nil, "3 schemas: 2 passing, 1 refused at compilation\n0 valid instances refused, 0 invalid accepted, 0 too complex\n1 more are valid but for the order of their properties: 1 schemas pass"},
		{[]string{"--any-order"}, "3 schemas: 2 passing, 1 refused at compilation\n0 valid instances refused, 0 invalid accepted"},
	} {
		out, err := schemaCommand(append([]string{"bench", dir}, c.flags...)...)
		if err != nil || !strings.Contains(out, c.says) {
			t.Errorf("%v: %v, %s", c.flags, err, out)
		}
	}
}
