//go:build unix

package chat

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAToolIsRunIfTheUserAgrees(t *testing.T) {
	tools := []Tool{{Name: "echo", Command: []string{"cat"}}, {Name: "ask"}}
	for _, c := range []struct {
		lines, result, shows string
	}{
		{"call echo {\"a\":\"\x1b[1m\"}\ny\n", `{"a":"` + "\x1b" + `[1m"}`, `run cat? [y]es`},
		{"call echo {}\nn\n", "The user does not allow this call.", "echo {}"},
		{"call echo {}\n\n", "The user does not allow this call.", "echo {}"},
		{"call ask {}\n42 eggs\n", "42 eggs", "ask {}"},
		{"call other {}\n", "There is no tool of this name.", "(there is no tool other)"},
	} {
		e := &echo{name: "echo"}
		in := &asking{lines: strings.Split(strings.TrimSuffix(c.lines, "\n"), "\n")}
		var out strings.Builder
		session := &session{Answerer: e, options: &Options{Tools: tools}, in: in, out: &out, errOut: &out, interactive: true, agreed: map[string]bool{}}
		err := session.run(t.Context(), nil)
		said := out.String() + strings.Join(in.prompts, "")
		if err != nil || len(e.asked) != 2 || !strings.Contains(said, c.shows) || strings.Contains(said, "\x1b") {
			t.Fatalf("%q: %q, %v; %d answers", c.lines, said, err, len(e.asked))
		}
		last := e.asked[1]
		if m := last[len(last)-1]; m.Role != RoleTool || m.CallID != "1" || m.Content != c.result || len(last[len(last)-2].Calls) != 1 {
			t.Errorf("%q: the model reads %+v", c.lines, last)
		}
	}
	e, out, _, err := talk(t, false, Options{Tools: tools}, "call echo {}\n")
	if err != nil || len(e.asked) != 1 || !strings.Contains(out, `"name": "echo"`) {
		t.Errorf("through pipes: %s%v", out, err)
	}
	if e, out, _, _ := talk(t, true, Options{Tools: tools}, "call echo {}\na\n/undo\ncall echo {}\n"); len(e.asked) != 4 {
		t.Errorf("allowed for good: %d answers, %s", len(e.asked), out)
	}
	loop := []Tool{{Name: "echo", Command: []string{"echo", "call echo {}"}}}
	if e, out, _, _ := talk(t, true, Options{Tools: loop}, "call echo {}\na\none\n"); len(e.asked) != mostRounds+2 || len(e.asked[mostRounds+1]) != 1 {
		t.Errorf("a model that calls again and again: %d answers, %s", len(e.asked), out)
	}
}

// asking is an input that remembers what it was asked for.
type asking struct{ lines, prompts []string }

func (a *asking) line(prompt string, _ bool) (string, error) {
	a.prompts = append(a.prompts, prompt)
	if len(a.lines) == 0 {
		return "", errAborted
	}
	line := a.lines[0]
	a.lines = a.lines[1:]
	return line, nil
}

func (a *asking) close() error { return nil }

func TestACommandOfAToolHasBounds(t *testing.T) {
	t.Setenv("LUTRA_API_KEY", "secret")
	run := func(arguments string, command ...string) string {
		t.Helper()
		result, err := runTool(t.Context(), command, arguments)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	if got := run("{}", "/bin/sh", "-c", "/bin/cat; echo; echo $LUTRA_API_KEY; echo wrong >&2; exit 3"); got != "{}\n\nwrong\n\n(error: exit status 3)" {
		t.Errorf("it returns %q", got)
	}
	if got := run(strings.Repeat("x", 1<<20), "/bin/cat"); len(got) > toolOutput+100 || !strings.HasSuffix(got, "(cut off after 65536 bytes)") {
		t.Errorf("it returns %d bytes", len(got))
	}
	if got := run("", "nowhere-to-be-found"); !strings.Contains(got, "(error: ") {
		t.Errorf("it returns %q", got)
	}
}

func TestAStoppedToolEndsWithItsChildren(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := runTool(ctx, []string{"/bin/sh", "-c", "/bin/sleep 1000 >" + path + " & wait"}, "")
		ended <- err
	}()
	f, err := os.Open(path) // once a child has opened it too
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	if _, err := io.ReadAll(f); err != nil { // until the last child has ended
		t.Error(err)
	}
}
