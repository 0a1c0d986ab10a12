package chat

import (
	"io"
	"strings"

	"github.com/lutra-lm/lutra/internal/markdown"
	"github.com/lutra-lm/lutra/internal/output"
)

// screen shows an answer as it comes: on a terminal with the thought before it and Markdown in
// its place, elsewhere the answer alone, as it is.
type screen struct {
	w        io.Writer
	terminal bool
	styled   bool             // with ANSI's styles
	markdown *markdown.Stream // nil: text is shown as it is written
	begun    bool             // something has been written
	thinking bool             // the last of it is a thought
}

// newScreen shows an answer on w. Without room, or where the user wants none of it, there is no
// Markdown.
func newScreen(w io.Writer, terminal, plain bool) *screen {
	s := &screen{w: w, terminal: terminal}
	if s.styled = terminal && !plain && output.Styled(w); s.styled {
		size := func() (int, int) { return output.Size(w) }
		const leastColumns, leastRows = 20, 6
		if columns, rows := size(); columns >= leastColumns && rows >= leastRows {
			s.markdown = markdown.NewStream(w, size)
		}
	}
	return s
}

func (s *screen) write(p Piece) error {
	if p.Thought != "" && s.terminal {
		if err := s.thought(p.Thought); err != nil {
			return err
		}
	}
	if p.Text == "" {
		return nil
	}
	if s.thinking {
		s.thinking, s.begun = false, false
		if err := s.print(s.dim("\n...done thinking.") + "\n\n"); err != nil {
			return err
		}
	}
	text := p.Text
	if s.terminal {
		text = output.WithoutControls(text)
	}
	if !s.begun && s.markdown != nil {
		text = strings.TrimLeft(text, "\n")
	}
	s.begun = s.begun || text != ""
	if s.markdown != nil {
		return s.markdown.Write(text)
	}
	return s.print(text)
}

func (s *screen) thought(text string) error {
	text = output.WithoutControls(text)
	if !s.thinking {
		s.thinking, s.begun = true, true
		if err := s.print(s.dim("Thinking...") + "\n"); err != nil {
			return err
		}
	}
	return s.print(s.dim(text))
}

func (s *screen) dim(text string) string {
	if s.styled {
		return "\x1b[2m" + text + "\x1b[0m"
	}
	return text
}

// end shows what has been held back, and ends the line: always, or if there is one.
func (s *screen) end(always bool) error {
	if s.markdown != nil {
		if err := s.markdown.Close(); err != nil {
			return err
		}
	}
	if always || s.begun {
		return s.print("\n")
	}
	return nil
}

func (s *screen) print(text string) error {
	_, err := io.WriteString(s.w, text)
	return err
}
