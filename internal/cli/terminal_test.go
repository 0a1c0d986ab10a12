//go:build unix

package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lutra-lm/lutra/internal/clienttest"
	"github.com/lutra-lm/lutra/internal/sweep"
)

const (
	enter = "\r"
	up    = "\x1b[A"
	left  = "\x1b[D"
	ctrlC = "\x03"

	altEnter = "\x1b\r"

	ctrlD = "\x04"
)

func TestAChatAtATerminalEditsAndRemembersLines(t *testing.T) {
	first := process(t, "chat", "--model", "lutra-tiny-s")
	s := clienttest.Start(t, first, 80)
	s.Sees("lutra-tiny-s: a small demonstration", "/help", "> ")
	s.Types("What is 12 * ?" + left + "7" + enter)
	s.Sees("12*7=84.", "Answer: 84", "> ")
	s.Types(up)
	s.Sees("What is 12 * 7?")
	s.Types(enter)
	s.Sees("Answer: 84", "> ")
	s.Types("/hlp" + enter)
	s.Sees("did you mean /help?", "> ")
	s.Types("half a question" + ctrlC)
	s.Sees("(Ctrl-C again, Ctrl-D or /bye leaves)", "> ")
	s.Types(`"""What is` + enter)
	s.Sees("... ")
	s.Types(`9 * 8?"""` + enter)
	s.Sees("Answer: ", "> ")
	s.Types("What is 12" + altEnter)
	s.Sees("... ")
	s.Types("* 7?" + enter)
	s.Sees("Answer: ", "> ")
	s.Types("\x1b[200~What is\n12 * 7?\x1b[201~")
	s.Sees("... ", "12 * 7?")
	s.Types(enter)
	s.Sees("Answer: ", "> ")
	s.Types("/set th\t of\t" + enter)
	s.Sees("(thinking: off)", "> ")
	s.Types(ctrlC)
	s.Sees("leaves)", "> ")
	s.Types(ctrlC)
	if err := first.Wait(); err != nil {
		t.Errorf("Ctrl-C twice: %v", err)
	}

	again := process(t, "chat", "--model", "lutra-tiny-s")
	again.Env = first.Env // the same home
	s = clienttest.Start(t, again, 80)
	s.Sees("> ")
	s.Types(up)
	s.Sees("/set thinking off")
	s.Types(ctrlC)
	s.Sees("> ")
	s.Types(ctrlD)
	if err := again.Wait(); err != nil {
		t.Errorf("Ctrl-D: %v", err)
	}
	var home string
	for _, e := range first.Env {
		if rest, ok := strings.CutPrefix(e, "HOME="); ok {
			home = rest
		}
	}
	found := ""
	_ = filepath.WalkDir(home, func(path string, d os.DirEntry, _ error) error {
		if d.Name() == "chat_history" {
			found = path
		}
		return nil
	})
	if info, err := os.Stat(found); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the history %q: %v, %v", found, info, err)
	}
}

func TestCtrlCStopsTheAnswerAndNotTheChat(t *testing.T) {
	server := api(t, "lutra", "slow")
	cmd := process(t, "chat", "--url", server.URL, "--no-history")
	s := clienttest.Start(t, cmd, 80)
	s.Sees("slow: at "+server.URL, "> ")
	s.Types("think for ever" + enter)
	s.Sees("Let me think")
	s.Types(ctrlC)
	s.Sees("(stopped)", "> ")
	s.Types("a short one" + enter)
	s.Sees("Let me think", "(cut off", "> ")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
}

func TestAnAnswerIsShownAsItIsWritten(t *testing.T) {
	const code = "def f(x):\n    if x:\n        return 1\n\tgoto **two**\n"
	url, _ := scripted(t, `{"choices":[{"index":0,"delta":{"reasoning_content":"Hm."}}]}`, `{"choices":[{"index":0,"delta":{"content":"def f(x):\n    if"}}]}`,
		`{"choices":[{"index":0,"delta":{"content":" x:\n        return 1\n"}}]}`, `{"choices":[{"index":0,"delta":{"content":"\tgoto **two**\n\u001b[2J`+"```py\\n  x\\n```"+`"},"finish_reason":"stop"}]}`)
	for _, c := range []struct{ env, thought string }{{"NO_COLOR=", "\x1b[2mHm.\x1b[0m"}, {"NO_COLOR=1", "\nHm.\n"}, {"TERM=dumb", "\nHm.\n"}} {
		cmd := process(t, "ask", "--url", url, "hi")
		cmd.Env = append(cmd.Env, c.env)
		s := clienttest.Start(t, cmd, 80)
		seen := strings.ReplaceAll(s.Sees("```py", "```"), "\r\n", "\n")
		if !strings.Contains(seen, code+"[2J```py\n  x\n") || !strings.Contains(seen, c.thought) || !strings.Contains(seen, "...done thinking.") {
			t.Errorf("with %s it shows %q", c.env, seen)
		}
		_ = cmd.Wait()
	}
}

func TestAToolOfAChatIsRunOnceTheUserAgrees(t *testing.T) {
	url, asked := scripted(t, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":"{\"a\": 1}"}}]},"finish_reason":"tool_calls"}]}`)
	cmd := process(t, "chat", "--url", url, "--tools", fileOf(t, toolList))
	s := clienttest.Start(t, cmd, 80)
	s.Sees("> ")
	s.Types("add" + enter)
	s.Sees(`add {"a": 1}`, "run cat? [y]es, [N]o, [a]lways: ")
	s.Types("y" + enter)
	s.Sees(`{"a": 1}`, "run cat?")
	s.Types(ctrlC)
	s.Sees("(stopped)", "> ")
	s.Types(up)
	s.Sees("add") // and not the answer to whether it may run
	s.Types(ctrlC)
	_ = cmd.Wait()
	if sent, _ := json.Marshal((*asked)["messages"]); !strings.Contains(string(sent), `{"content":"{\"a\": 1}","role":"tool","tool_call_id":"c1"}`) {
		t.Errorf("the server is sent %s", sent)
	}
}

func TestAChatNeedsNeitherAHomeNorAWideTerminal(t *testing.T) {
	sweep.Full(t)
	for name, change := range map[string]func(*exec.Cmd){
		"no home":          func(c *exec.Cmd) { c.Env = append(c.Env, "HOME=", "XDG_STATE_HOME=") },
		"a read-only home": func(c *exec.Cmd) { c.Env = append(c.Env, "HOME=/proc", "XDG_STATE_HOME=") },
		"a dumb terminal":  func(c *exec.Cmd) { c.Env = append(c.Env, "TERM=dumb") },
	} {
		t.Run(name, func(t *testing.T) {
			cmd := process(t, "chat", "--model", "lutra-tiny-s")
			change(cmd)
			s := clienttest.Start(t, cmd, 12)
			s.Sees("> ")
			s.Types("What is 12 * 7?" + enter)
			s.Sees("Answer: 84", "> ")
			s.Types("/bye" + enter)
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAServerAtATerminalLogsReadableLines(t *testing.T) {
	sweep.Full(t)
	for _, c := range []struct {
		env   string
		color bool
	}{{"NO_COLOR=", true}, {"NO_COLOR=1", false}, {"TERM=dumb", false}} {
		cmd := process(t, "serve", "--addr", "127.0.0.1:0", "--model", "lutra-tiny-s")
		cmd.Env = append(cmd.Env, c.env)
		s := clienttest.Start(t, cmd, 80)
		said := s.Sees("listening on 127.0.0.1:", "lutra-tiny-s: llama, ", "ready on 127.0.0.1:", "open http://127.0.0.1:", "try", "curl http://127.0.0.1:")
		if got := strings.Contains(said, "\x1b["); got != c.color {
			t.Errorf("%s: colours %v in %q", c.env, got, said)
		}
		s.Types(ctrlC)
		_ = cmd.Wait()
	}
}

func TestAReaderThatLeavesEndsACommandQuietly(t *testing.T) {
	for _, line := range []string{"info --tensors lutra-tiny-s", "--help", "serve --help", "ask 'What is 12 * 7?'"} {
		self := process(t).Path
		cmd := process(t)
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "'" + self + "' " + line + " | :"}
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("lutra %s | : says %q, %v", line, out, err)
		}
	}
}
