package markdown

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/mattn/go-runewidth"
)

// mostHeld bounds the bytes of a block that is not finished.
const mostHeld = 32 << 10

// Stream shows Markdown as it comes: what is not finished as it is written, and each finished
// block in its place. A block that no longer fits the screen is set in parts.
type Stream struct {
	w      io.Writer
	size   func() (columns, rows int)
	held   string // the blocks that are not finished, which the screen shows from a line's beginning on
	before string // the line that opens the code whose rest is held
	gap    bool   // an empty line comes before the next block
	raw    bool   // this line is too long to be taken back
	row    int    // of the cursor, from where held begins
	column int
}

// NewStream writes to w, a terminal; size is asked for its columns and rows before each use.
func NewStream(w io.Writer, size func() (columns, rows int)) *Stream {
	return &Stream{w: w, size: size}
}

// Write shows a piece of text, which has no control characters but tabs and ends of lines.
func (s *Stream) Write(text string) error {
	for part := range strings.Lines(text) {
		if err := s.part(part); err != nil {
			return err
		}
	}
	return nil
}

// part shows a piece of one line.
func (s *Stream) part(text string) error {
	columns, rows := s.size()
	if s.raw {
		s.raw = !strings.HasSuffix(text, "\n")
		return s.print(text)
	}
	if s.held == "" && s.before == "" && strings.TrimSpace(text) == "" {
		return nil // between blocks
	}
	if s.held += text; s.gap {
		s.gap = false
		if err := s.print("\n"); err != nil {
			return err
		}
	}
	if err := s.show(text, columns); err != nil {
		return err
	}
	if end := finished(s.before, s.held); end > 0 {
		if err := s.set(end, columns); err != nil {
			return err
		}
	}
	if s.row < rows-2 && len(s.held) < mostHeld {
		return nil
	}
	if end := strings.LastIndexByte(s.held, '\n') + 1; end > 0 {
		return s.setPart(end, columns)
	}
	s.held, s.row, s.column, s.raw = "", 0, 0, true
	return nil
}

// Close shows what is left. The cursor stays in the last line.
func (s *Stream) Close() error {
	columns, _ := s.size()
	if strings.TrimSpace(s.held) == "" {
		return nil
	}
	lines := strings.TrimSuffix(s.rendered(s.held, columns), "\n")
	if lines == s.held {
		return nil
	}
	defer func() { s.held, s.before = "", "" }()
	return s.print(s.back() + lines)
}

// set puts the finished beginning of what is held in its place.
func (s *Stream) set(end, columns int) error {
	done, rest := s.held[:end], s.held[end:]
	out := s.back() + s.rendered(done, columns)
	s.held, s.before, s.gap, s.row, s.column = rest, "", rest == "", 0, 0
	if rest != "" {
		out += "\n"
	}
	if err := s.print(out); err != nil {
		return err
	}
	return s.show(rest, columns)
}

// setPart sets a beginning that is not finished: the screen has no room for more.
func (s *Stream) setPart(end, columns int) error {
	done, rest := s.held[:end], s.held[end:]
	out := s.back() + s.rendered(done, columns)
	if s.before == "" {
		s.before = openFence(done)
	}
	s.held, s.row, s.column = rest, 0, 0
	if err := s.print(out); err != nil {
		return err
	}
	return s.show(rest, columns)
}

// rendered returns Markdown in lines, each with its end.
func (s *Stream) rendered(text string, columns int) string {
	return strings.TrimRight(Render(s.before+text, columns), "\n") + "\n"
}

// back returns what takes back what is held from the screen.
func (s *Stream) back() string {
	up := ""
	if s.row > 0 {
		up = fmt.Sprintf("\x1b[%dA", s.row)
	}
	return "\r" + up + "\x1b[J"
}

// show prints text as it is written, and follows the cursor.
func (s *Stream) show(text string, columns int) error {
	text = strings.ReplaceAll(text, "\t", "    ")
	for _, r := range text {
		w := runewidth.RuneWidth(r)
		switch {
		case r == '\n':
			s.row, s.column = s.row+1, 0
		case s.column+w > columns:
			s.row, s.column = s.row+1, w
		default:
			s.column += w
		}
	}
	return s.print(text)
}

func (s *Stream) print(text string) error {
	if text == "" {
		return nil
	}
	_, err := io.WriteString(s.w, text)
	return err
}

var (
	fence   = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})")
	heading = regexp.MustCompile(`^#{1,6} .*\n`)
	marker  = regexp.MustCompile(`^(?:[-*+]|\d{1,9}[.)])(?:\s|$)`)
)

// finished returns how many bytes at the beginning of text are blocks that nothing can be added
// to. A line without an end counts once it shows what it is; before is the line that opens the
// code in which text begins.
func finished(before, text string) (end int) {
	open, blank, list, at := "", false, false, 0
	if m := fence.FindStringSubmatch(before); m != nil {
		open = m[1]
	}
	for line := range strings.Lines(text) {
		whole := strings.HasSuffix(line, "\n")
		from := at
		at += len(line)
		bare := strings.TrimSpace(line)
		indented := line[0] == ' ' || line[0] == '\t'
		m := fence.FindStringSubmatch(line)
		switch {
		case open != "":
			if whole && m != nil && strings.HasPrefix(bare, open) && strings.Trim(bare, open[:1]) == "" {
				if open = ""; !list {
					end = at
				}
			}
		case bare == "":
			blank = whole
		case !whole && !strings.Contains(strings.TrimLeft(line, " "), " ") && len(bare) < 7:
			// it may become anything
		default:
			begins := from == 0 || blank && !indented && !(list && marker.MatchString(line))
			if m != nil && !(list && indented) || heading.MatchString(line) {
				begins = true
			}
			if begins {
				end, list = from, marker.MatchString(line)
			}
			if blank = false; m != nil {
				open = m[1]
			} else if heading.MatchString(line) {
				end = at
			}
		}
	}
	return end
}

// openFence returns the line that opens code which text does not close; empty: there is none.
func openFence(text string) (line string) {
	for l := range strings.Lines(text) {
		m := fence.FindStringSubmatch(l)
		switch bare := strings.TrimSpace(l); {
		case m == nil:
		case line == "":
			line = l
		case strings.HasPrefix(bare, fence.FindStringSubmatch(line)[1]) && strings.Trim(bare, bare[:1]) == "":
			line = ""
		}
	}
	return line
}
