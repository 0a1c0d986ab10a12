//go:build unix

package clienttest

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// Session is a command at a terminal.
type Session struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	mu   sync.Mutex
	news *sync.Cond
	text string // on the screen, since it was last looked at
	over bool
}

// Start runs a command at a terminal of so many columns.
func Start(t *testing.T, cmd *exec.Cmd, columns uint16) *Session {
	t.Helper()
	s := &Session{t: t, cmd: cmd}
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

// Sees waits for each of words in turn on the screen, and returns all up to the last.
func (s *Session) Sees(words ...string) (seen string) {
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

// Types types keys.
func (s *Session) Types(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}
