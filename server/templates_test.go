package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/toy"
)

// histories are conversations with tools as clients write them.
var histories = map[string]string{
	"turns":                     `[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello."},{"role":"user","content":"Who are you?"}]`,
	"a developer and parts":     `[{"role":"developer","content":[{"type":"text","text":"Be "},{"type":"text","text":"brief."}]},{"role":"user","content":[{"type":"text","text":"Grüß <b> & \"dich\""},{"type":"text","text":"\n!"}]}]`,
	"a call":                    `[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[` + bonnCall + `]}]`,
	"a result":                  `[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[` + bonnCall + `]},{"role":"tool","tool_call_id":"aaaaaaaa1","content":"Rain"}]`,
	"an empty content":          `[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"},{"role":"assistant","content":"","tool_calls":[` + bonnCall + `]},{"role":"tool","tool_call_id":"aaaaaaaa1","content":[{"type":"text","text":"Ra"},{"type":"text","text":"in"}]}]`,
	"a text before a call":      `[{"role":"user","content":"Hi"},{"role":"assistant","content":"I look.","tool_calls":[` + bonnCall + `]},{"role":"tool","tool_call_id":"aaaaaaaa1","content":"{\"sky\": \"<grey>\"}"}]`,
	"after a result":            `[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[` + bonnCall + `]},{"role":"tool","tool_call_id":"aaaaaaaa1","content":"Rain"},{"role":"assistant","content":"It rains."},{"role":"user","content":"And now?"}]`,
	"two calls":                 `[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[` + bonnCall + `,` + romeCall + `]},{"role":"tool","tool_call_id":"aaaaaaaa1","content":"Rain"},{"role":"tool","tool_call_id":"bbbbbbbb2","content":"Sun"}]`,
	"results in other order":    `[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[` + bonnCall + `,` + romeCall + `]},{"role":"tool","tool_call_id":"bbbbbbbb2","content":"Sun"},{"role":"tool","tool_call_id":"aaaaaaaa1","content":"Rain"}]`,
	"one call after another":    `[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[` + bonnCall + `]},{"role":"tool","tool_call_id":"aaaaaaaa1","content":"Rain"},{"role":"assistant","content":null,"tool_calls":[` + romeCall + `]},{"role":"tool","tool_call_id":"bbbbbbbb2","content":"Sun"}]`,
	"thoughts":                  `[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello.","reasoning_content":"They greet."},{"role":"user","content":"Weather?"},{"role":"assistant","content":null,"reasoning_content":"I look.","tool_calls":[` + bonnCall + `]},{"role":"tool","tool_call_id":"aaaaaaaa1","content":"Rain"}]`,
	"a thought in the content":  `[{"role":"user","content":"Hi"},{"role":"assistant","content":"<think>\nThey greet.\n</think>\n\nHello."},{"role":"user","content":"Weather?"}]`,
	"an empty answer":           `[{"role":"user","content":"Hi"},{"role":"assistant","content":""},{"role":"user","content":"Well?"}]`,
	"an answer without content": `[{"role":"user","content":"Hi"},{"role":"assistant"},{"role":"user","content":"Well?"}]`,
	"the same role twice":       `[{"role":"user","content":"Hi"},{"role":"user","content":"Are you there?"}]`,
	"a call without result":     `[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[` + bonnCall + `]},{"role":"user","content":"Never mind."}]`,
}

const (
	bonnCall = `{"id":"aaaaaaaa1","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Bonn <é>\", \"days\": 3, \"at\": [1.5, true, null]}"}}`
	romeCall = `{"id":"bbbbbbbb2","type":"function","function":{"name":"get_weather","arguments":{"city":"Rome"}}}`
	// twoTools have what JSON writes in several ways.
	twoTools = `[{"type":"function","function":{"name":"get_weather","description":"The weather <of> a \"city\" & its Länder.","parameters":{"type":"object","properties":{"city":{"type":"string","description":"Its name"},"days":{"type":"integer","enum":[1,3]},"at":{"type":"array","items":{"type":"number"}}},"required":["city"]}}},
		{"type":"function","function":{"name":"now","description":"The time","parameters":{"type":"object","properties":{}}}}]`
)

func TestHistoriesReachModelsAsTheirTemplatesWriteThemInPython(t *testing.T) {
	sweep.Full(t)
	dir := os.Getenv("LUTRA_GOLDEN")
	if dir == "" {
		t.Skip("LUTRA_GOLDEN does not name the folder of reference data")
	}
	interpreter := clienttest.Python(t, "jinja2")
	paths, _ := filepath.Glob(filepath.Join(dir, "templates", "*.jinja"))
	if len(paths) == 0 {
		t.Fatal("no templates")
	}
	f := start(t, &toy.Model{}, nil)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".jinja"), func(t *testing.T) { f.compare(t, interpreter, path) })
	}
}

func (f *fixture) compare(t *testing.T, interpreter, path string) {
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f.withTemplate(string(source))
	type conversation struct {
		Messages json.RawMessage `json:"messages"`
		Tools    json.RawMessage `json:"tools,omitempty"`
		Kwargs   json.RawMessage `json:"chat_template_kwargs,omitempty"`
	}
	var names []string
	var all []conversation
	for name, messages := range histories {
		for _, tools := range []string{"", twoTools} {
			for _, kwargs := range []string{"", `{"enable_thinking":false}`} {
				names = append(names, name)
				all = append(all, conversation{json.RawMessage(messages), json.RawMessage(tools), json.RawMessage(kwargs)})
			}
		}
	}
	tok := f.model.Tokenizer
	special := func(id int32, ok bool) string {
		if !ok {
			return ""
		}
		return tok.Token(id)
	}
	now := time.Now()
	var noTools any // null, as transformers gives it
	if strings.Contains(path, "Hermes-3") {
		noTools = []any{} // its template fails on that
	}
	given, err := json.Marshal(map[string]any{
		"source": string(source), "bos_token": special(tok.BOS()), "eos_token": special(tok.EOS()), "now": now.Format("2006-01-02T15:04:05"), "conversations": all,
		"no_tools": noTools,
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), interpreter, filepath.Join("testdata", "render.py"))
	cmd.Stdin, cmd.Stderr = bytes.NewReader(given), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []struct{ Text, Error string }
	if err := json.Unmarshal(out, &want); err != nil || len(want) != len(all) {
		t.Fatalf("%d answers to %d conversations: %v", len(want), len(all), err)
	}
	equal, refused, own := 0, 0, 0
	var wrong []string
	for i, c := range all {
		body, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		status, _, answer := f.post("/apply-template", string(body))
		var got struct{ Prompt string }
		if err := json.Unmarshal(answer, &got); err != nil {
			t.Fatal(err)
		}
		ours := !f.model.Template.ReadsTools() && len(c.Tools) > 0 || !f.model.Template.ReadsCalls() && strings.Contains(string(c.Messages), "tool_calls")
		switch {
		case ours && status == http.StatusOK: // told in words of ours
			own++
		case status == http.StatusOK && got.Prompt == want[i].Text && want[i].Error == "":
			equal++
		case status == http.StatusBadRequest && want[i].Error != "":
			refused++
		default:
			wrong = append(wrong, fmt.Sprintf("%s, tools %v, %s: %d %.300s\n%q\nPython:\n%q %s", names[i], len(c.Tools) > 0, c.Kwargs, status, answer, got.Prompt, want[i].Text, want[i].Error))
		}
	}
	if now.Day() != time.Now().Day() {
		t.Skip("a day has ended between the two")
	}
	for _, w := range wrong {
		t.Error(w)
	}
	t.Logf("%d equal, %d refused by both, %d in words of ours", equal, refused, own)
}
