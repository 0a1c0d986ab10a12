package chat

import (
	"io"
	"strings"

	"github.com/lutra-lm/lutra/internal/output"
)

// screen shows an answer as it comes and as it is written: on a terminal with the thought before it,
// elsewhere alone.
type screen struct {
	w        io.Writer
	terminal bool
	begun    bool // something has been written
	thinking bool // the last of it is a thought
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
	if !s.begun && s.terminal {
		text = strings.TrimLeft(text, "\n")
	}
	s.begun = s.begun || text != ""
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
	if s.terminal && output.Styled(s.w) {
		return "\x1b[2m" + text + "\x1b[0m"
	}
	return text
}

// end ends the line: always, or if there is one.
func (s *screen) end(always bool) error {
	if always || s.begun {
		return s.print("\n")
	}
	return nil
}

func (s *screen) print(text string) error {
	_, err := io.WriteString(s.w, text)
	return err
}
