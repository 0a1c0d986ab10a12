package chat

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/peterh/liner"

	"github.com/lutra-lm/lutra/internal/output"
)

// input gives a chat its lines.
type input interface {
	// line reads a line, without its end; keep has it offered again. Its error is io.EOF,
	// errAborted or one of reading.
	line(prompt string, keep bool) (string, error)
	close() error
}

// errAborted means that the user discarded the line with Ctrl-C.
var errAborted = errors.New("line discarded")

// newInput reads from a terminal, with editing and history, or else from in. complete lists
// what a line may become.
func newInput(in io.Reader, out io.Writer, remember bool, complete func(line string) []string) (i input, interactive bool) {
	if in == os.Stdin && out == os.Stdout && output.IsTerminal(in) && output.IsTerminal(out) {
		return newTerminal(remember, complete), true
	}
	return &lines{bufio.NewReader(in)}, false
}

// lines are read from a pipe or a file.
type lines struct{ r *bufio.Reader }

func (l *lines) line(string, bool) (string, error) {
	var text strings.Builder
	for {
		part, err := l.r.ReadSlice('\n')
		text.Write(part)
		switch {
		case text.Len() > MaxQuestion:
			return "", fmt.Errorf("a line has more than %d bytes", MaxQuestion)
		case err == nil, errors.Is(err, io.EOF) && text.Len() > 0:
			return strings.TrimRight(text.String(), "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
}

func (l *lines) close() error { return nil }

// terminal edits lines and keeps them for the next chat.
type terminal struct {
	*liner.State
	keys    *keys    // nil: the editor reads the terminal itself
	history *os.File // new lines are appended; nil: none is kept
}

func newTerminal(remember bool, complete func(line string) []string) *terminal {
	t := &terminal{}
	t.State, t.keys = newEditor()
	t.SetCtrlCAborts(true)
	t.SetMultiLineMode(true)
	t.SetTabCompletionStyle(liner.TabPrints)
	t.SetCompleter(complete)
	if remember {
		t.openHistory()
	}
	return t
}

func (t *terminal) line(prompt string, keep bool) (string, error) {
	if t.keys != nil {
		t.keys.begin()
		defer t.keys.end()
	}
	text, err := t.Prompt(prompt)
	switch {
	case errors.Is(err, liner.ErrPromptAborted):
		return "", errAborted
	case err != nil:
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(os.Stdout) // the shell's prompt begins a line
		}
		return "", err
	}
	if keep && strings.TrimSpace(text) != "" {
		t.AppendHistory(text)
		if t.history != nil {
			_, _ = fmt.Fprintln(t.history, text) // chats go on when the disk is full
		}
	}
	return text, nil
}

func (t *terminal) close() error {
	if t.history != nil {
		_ = t.history.Close() // as above
	}
	return t.Close()
}

// openHistory reads former lines. Without a home that can be written there is no
// history, which does not prevent a chat.
func (t *terminal) openHistory() {
	path, ok := stateFile("chat_history")
	if !ok || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	_ = f.Chmod(0o600)   // others may have made it
	const most = 1 << 20 // bytes to read, from the end
	end, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, _ = f.Seek(max(0, end-most), io.SeekStart) // a pipe has no end: all of it is read
	}
	n, err := t.ReadHistory(f)
	if err != nil || n > 2*liner.HistoryLimit || end > most { // else the file grows without end
		if f.Truncate(0) == nil {
			_, _ = t.WriteHistory(f)
		}
	}
	t.history = f
}
