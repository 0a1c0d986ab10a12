package server

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// agent makes a toy model whose turn is chosen by the number of results of tools that it has read. So it
// calls tools of its own accord, and knows when to stop.
func agent(t *testing.T, turns ...string) *toy.Model {
	t.Helper()
	tok := words()
	header := tok.Encode(nil, "<|im_start|>assistant\n", tokenizer.Options{ParseSpecial: true})
	end, _ := tok.EOS()
	replies := make([][]int32, len(turns))
	for i, text := range turns {
		replies[i] = append(tok.Encode(nil, text, tokenizer.Options{}), end)
	}
	return &toy.Model{Logits: func(tokens []int32, row []float32) {
		clear(row)
		last := len(tokens) - 1
		for last >= 0 && tokens[last] != header[0] {
			last--
		}
		var before strings.Builder
		for _, id := range tokens[:max(last, 0)] {
			before.Write(tok.Piece(id))
		}
		reply := replies[min(strings.Count(before.String(), "<tool_response>"), len(replies)-1)]
		if said := len(tokens) - last - len(header); said >= 0 && said < len(reply) {
			row[reply[said]] = 50
		}
	}}
}

// runExample runs a program of docs/examples that needs a Python package.
func runExample(t *testing.T, script, needs, url string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), clienttest.Python(t, needs), "../docs/examples/"+script)
	cmd.Env = append(os.Environ(), "LUTRA_URL="+url, "LUTRA_MODEL=toy", "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=*", "no_proxy=*")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestExamplesOfClientsDriveAModelThatKnowsTools(t *testing.T) {
	sweep.Full(t)
	multiply := toolcall.Hermes.Write("multiply", `{"a": 12, "b": 7}`)
	add := toolcall.Hermes.Write("add", `{"a": 84, "b": 1}`)
	for _, c := range []struct {
		script, needs string
		turns, prints []string
	}{
		{"langchain_agent.py", "langchain_openai", []string{multiply, add, "It is 85."},
			[]string{"calls multiply {'a': 12, 'b': 7}", "reads 84", "calls add {'a': 84, 'b': 1}", "reads 85", "answers 'It is 85.'"}},
		{"ollama_client.py", "ollama", []string{multiply, "It is 84."}, []string{"1 calls, then 'It is 84.'"}},
	} {
		t.Run(c.script, func(t *testing.T) {
			out := runExample(t, c.script, c.needs, start(t, agent(t, c.turns...), nil).url)
			for rest := out; len(c.prints) > 0; c.prints = c.prints[1:] {
				_, behind, ok := strings.Cut(rest, c.prints[0])
				if !ok {
					t.Fatalf("it prints\n%s\nwithout %q in its place", out, c.prints[0])
				}
				rest = behind
			}
		})
	}
}
