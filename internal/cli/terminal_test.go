//go:build unix

package cli

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// session is a command at a terminal.
type session struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	mu   sync.Mutex
	news *sync.Cond
	text string // on the screen, since it was last looked at
	over bool
}

func start(t *testing.T, cmd *exec.Cmd, columns uint16) *session {
	t.Helper()
	s := &session{t: t, cmd: cmd}
	s.news = sync.NewCond(&s.mu)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: columns})
	if err != nil {
		t.Skipf("no pseudo terminal: %v", err)
	}
	s.tty = tty
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			s.mu.Lock()
			s.text += string(buf[:n])
			s.over = s.over || err != nil // the terminal is gone with its last process
			s.news.Broadcast()
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = tty.Close() })
	if end, ok := t.Deadline(); ok { // show the screen before the test is killed
		giveUp := time.AfterFunc(time.Until(end)-3*time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.over = true
			s.news.Broadcast()
		})
		t.Cleanup(func() { giveUp.Stop() })
	}
	return s
}

// sees waits for each of words in turn on the screen, and returns all up to the last.
func (s *session) sees(words ...string) (seen string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range words {
		for !strings.Contains(s.text, w) {
			if s.over {
				s.t.Fatalf("the screen shows %q, and never %q", seen+s.text, w)
			}
			s.news.Wait()
		}
		before, after, _ := strings.Cut(s.text, w)
		seen += before + w
		s.text = after
	}
	return seen
}

func (s *session) types(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

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
	s := start(t, first, 80)
	s.sees("lutra-tiny-s: a small demonstration", "/help", "> ")
	s.types("What is 12 * ?" + left + "7" + enter)
	s.sees("12*7=84.", "Answer: 84", "> ")
	s.types(up)
	s.sees("What is 12 * 7?")
	s.types(enter)
	s.sees("Answer: 84", "> ")
	s.types("/hlp" + enter)
	s.sees("did you mean /help?", "> ")
	s.types("half a question" + ctrlC)
	s.sees("(Ctrl-C again, Ctrl-D or /bye leaves)", "> ")
	s.types(`"""What is` + enter)
	s.sees("... ")
	s.types(`9 * 8?"""` + enter)
	s.sees("Answer: ", "> ")
	s.types("What is 12" + altEnter)
	s.sees("... ")
	s.types("* 7?" + enter)
	s.sees("Answer: ", "> ")
	s.types("\x1b[200~What is\n12 * 7?\x1b[201~")
	s.sees("... ", "12 * 7?")
	s.types(enter)
	s.sees("Answer: ", "> ")
	s.types("/set th\t of\t" + enter)
	s.sees("(thinking: off)", "> ")
	s.types(ctrlC)
	s.sees("leaves)", "> ")
	s.types(ctrlC)
	if err := first.Wait(); err != nil {
		t.Errorf("Ctrl-C twice: %v", err)
	}

	again := process(t, "chat", "--model", "lutra-tiny-s")
	again.Env = first.Env // the same home
	s = start(t, again, 80)
	s.sees("> ")
	s.types(up)
	s.sees("/set thinking off")
	s.types(ctrlC)
	s.sees("> ")
	s.types(ctrlD)
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
	s := start(t, cmd, 80)
	s.sees("slow: at "+server.URL, "> ")
	s.types("think for ever" + enter)
	s.sees("Let me think")
	s.types(ctrlC)
	s.sees("(stopped)", "> ")
	s.types("a short one" + enter)
	s.sees("Let me think", "(cut off", "> ")
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
		s := start(t, cmd, 80)
		seen := strings.ReplaceAll(s.sees("```py", "```"), "\r\n", "\n")
		if !strings.Contains(seen, code+"[2J```py\n  x\n") || !strings.Contains(seen, c.thought) || !strings.Contains(seen, "...done thinking.") {
			t.Errorf("with %s it shows %q", c.env, seen)
		}
		_ = cmd.Wait()
	}
}

func TestAToolOfAChatIsRunOnceTheUserAgrees(t *testing.T) {
	url, asked := scripted(t, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":"{\"a\": 1}"}}]},"finish_reason":"tool_calls"}]}`)
	cmd := process(t, "chat", "--url", url, "--tools", fileOf(t, toolList))
	s := start(t, cmd, 80)
	s.sees("> ")
	s.types("add" + enter)
	s.sees(`add {"a": 1}`, "run cat? [y]es, [N]o, [a]lways: ")
	s.types("y" + enter)
	s.sees(`{"a": 1}`, "run cat?")
	s.types(ctrlC)
	s.sees("(stopped)", "> ")
	s.types(up)
	s.sees("add") // and not the answer to whether it may run
	s.types(ctrlC)
	_ = cmd.Wait()
	if sent, _ := json.Marshal((*asked)["messages"]); !strings.Contains(string(sent), `{"content":"{\"a\": 1}","role":"tool","tool_call_id":"c1"}`) {
		t.Errorf("the server is sent %s", sent)
	}
}

func TestAChatNeedsNeitherAHomeNorAWideTerminal(t *testing.T) {
	for name, change := range map[string]func(*exec.Cmd){
		"no home":          func(c *exec.Cmd) { c.Env = append(c.Env, "HOME=", "XDG_STATE_HOME=") },
		"a read-only home": func(c *exec.Cmd) { c.Env = append(c.Env, "HOME=/proc", "XDG_STATE_HOME=") },
		"a dumb terminal":  func(c *exec.Cmd) { c.Env = append(c.Env, "TERM=dumb") },
	} {
		t.Run(name, func(t *testing.T) {
			cmd := process(t, "chat", "--model", "lutra-tiny-s")
			change(cmd)
			s := start(t, cmd, 12)
			s.sees("> ")
			s.types("What is 12 * 7?" + enter)
			s.sees("Answer: 84", "> ")
			s.types("/bye" + enter)
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCtrlCEndsABenchmarkOfKernelsWithItsRows(t *testing.T) {
	cmd := process(t, "bench", "kernels", "--budget", "50ms", "--full", "--tokens", "8,32") // one token takes more memory than caches have
	s := start(t, cmd, 80)
	s.sees("products")
	s.types(ctrlC)
	s.sees("isa ", "kernel ", "GMAC/s", "ratio\r\n", "1 ")
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("it ended with %v, want status 130", err)
	}
}

func TestAServerAtATerminalLogsReadableLines(t *testing.T) {
	for _, c := range []struct {
		env   string
		color bool
	}{{"NO_COLOR=", true}, {"NO_COLOR=1", false}, {"TERM=dumb", false}} {
		cmd := process(t, "serve", "--addr", "127.0.0.1:0", "--model", "lutra-tiny-s")
		cmd.Env = append(cmd.Env, c.env)
		s := start(t, cmd, 80)
		said := s.sees("listening on 127.0.0.1:", "lutra-tiny-s: llama, ", "ready on 127.0.0.1:", "open http://127.0.0.1:", "try", "curl http://127.0.0.1:")
		if got := strings.Contains(said, "\x1b["); got != c.color {
			t.Errorf("%s: colours %v in %q", c.env, got, said)
		}
		s.types(ctrlC)
		_ = cmd.Wait()
	}
}

func TestAReaderThatLeavesEndsACommandQuietly(t *testing.T) {
	for _, line := range []string{"info --tensors lutra-tiny-s", "--help", "bench engine --help", "ask 'What is 12 * 7?'"} {
		self := process(t).Path
		cmd := process(t)
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "'" + self + "' " + line + " | :"}
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("lutra %s | : says %q, %v", line, out, err)
		}
	}
}

func TestAProgressBarNeedsRoom(t *testing.T) {
	for width, want := range map[uint16]bool{80: true, 40: false} {
		cmd := process(t, "eval", "--limit", "2", "--model", "lutra-tiny-s", "--methods", "single", "--n", "1")
		s := start(t, cmd, width)
		if got := strings.Contains(s.sees("single"), "problems × points"); got != want {
			t.Errorf("in %d columns: a bar %v", width, got)
		}
		_ = cmd.Wait()
	}
}
