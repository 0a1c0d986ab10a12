package chat

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/peterh/liner"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// input gives a chat its lines.
type input interface {
	// line reads a line, without its end. Its error is io.EOF, errAborted or one of
	// reading.
	line(prompt string) (string, error)
	close() error
}

// errAborted means that the user discarded the line with Ctrl-C.
var errAborted = errors.New("line discarded")

// newInput reads from a terminal, with editing and history, or else from in.
func newInput(in io.Reader, out io.Writer, remember bool) (i input, interactive bool) {
	if in == os.Stdin && out == os.Stdout && output.IsTerminal(in) && output.IsTerminal(out) {
		return newTerminal(remember), true
	}
	return &lines{bufio.NewReader(in)}, false
}

// lines are read from a pipe or a file.
type lines struct{ r *bufio.Reader }

func (l *lines) line(string) (string, error) {
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
	history *os.File // new lines are appended; nil: none is kept
}

func newTerminal(remember bool) *terminal {
	t := &terminal{State: liner.NewLiner()}
	t.SetCtrlCAborts(true)
	t.SetMultiLineMode(true)
	t.SetCompleter(func(line string) (list []string) {
		return completeLine(line)
	})
	if remember {
		t.openHistory()
	}
	return t
}

func (t *terminal) line(prompt string) (string, error) {
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
	if strings.TrimSpace(text) != "" {
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
	path, ok := historyFile()
	if !ok || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	const most = 1 << 20 // bytes to read, from the end
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, end-most), io.SeekStart) // a pipe has no end: all of it is read
	}
	n, err := t.ReadHistory(f)
	if err != nil || n > 2*liner.HistoryLimit { // else the file grows without end
		if f.Truncate(0) == nil {
			_, _ = t.WriteHistory(f)
		}
	}
	t.history = f
}

// historyFile returns the file of earlier lines, in the system's folder for states.
func historyFile() (path string, ok bool) {
	var dir string
	var err error
	switch {
	case filepath.IsAbs(os.Getenv("XDG_STATE_HOME")):
		dir = os.Getenv("XDG_STATE_HOME")
	case runtime.GOOS == "windows":
		dir, err = os.UserCacheDir() // %LocalAppData%
	case runtime.GOOS == "darwin":
		dir, err = os.UserConfigDir()
	default:
		dir, err = os.UserHomeDir()
		dir = filepath.Join(dir, ".local", "state")
	}
	return filepath.Join(dir, "lutra", "chat_history"), err == nil && filepath.IsAbs(dir)
}

// completeLine lists the commands that a line begins, ready for their arguments, and
// the search methods that an argument begins.
func completeLine(line string) (list []string) {
	if line == "" {
		return nil
	}
	for _, c := range chatCommands() {
		for _, name := range c.names {
			if c.arg != "" {
				name += " "
			}
			if strings.HasPrefix(name, line) {
				list = append(list, name)
			}
		}
	}
	for _, method := range scaling.Names() {
		if whole := scalingCommand + " " + method; strings.HasPrefix(whole, line) && strings.HasPrefix(line, scalingCommand+" ") {
			list = append(list, whole)
		}
	}
	return list
}
