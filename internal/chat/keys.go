package chat

import (
	"bytes"
	"io"
)

// keys are the bytes that a terminal sends, on their way to the line editor, which knows single lines
// only. Alt-Enter, and the ends of lines of a pasted text, become a backslash at the line's end, which
// tells the chat that another line follows.
//
//	terminal ─▶ keys ─▶ pipe ─▶ editor
type keys struct {
	from   io.Reader // the terminal
	to     io.Writer // the pipe
	on     io.Writer // where the terminal is told of pasting
	wanted chan struct{}
	text   translation
}

// What terminals and editors mean by these bytes.
const (
	pasteOn, pasteOff     = "\x1b[?2004h", "\x1b[?2004l"
	pasteBegin, pasteEnd  = "\x1b[200~", "\x1b[201~"
	altEnter, altLinefeed = "\x1b\r", "\x1b\n"
	anotherLine           = "\x05\\\r" // Ctrl-E: at the line's end
	endOfInput            = "\x04"
)

func newKeys(from io.Reader, to, on io.Writer) *keys {
	k := &keys{from: from, to: to, on: on, wanted: make(chan struct{}, 1)}
	go k.run()
	return k
}

// begin has keys read for a line, end no longer.
func (k *keys) begin() {
	_, _ = io.WriteString(k.on, pasteOn) // the editor will say if the terminal is gone
	select {
	case k.wanted <- struct{}{}:
	default: // it is known
	}
}

func (k *keys) end() {
	_, _ = io.WriteString(k.on, pasteOff)
	select {
	case <-k.wanted: // the line was there already
	default:
	}
}

// run ends with the process: reading a terminal cannot be stopped. It reads while a line is
// wanted only, since the terminal is others' between two.
func (k *keys) run() {
	buf := make([]byte, 4096)
	for range k.wanted {
		for more := true; more; {
			n, err := k.from.Read(buf)
			out := k.text.next(buf[:n])
			if err != nil {
				out = append(out, endOfInput...)
			}
			if _, err := k.to.Write(out); err != nil {
				return
			}
			more = !bytes.ContainsAny(out, "\r\n\x03"+endOfInput) || k.text.pasting
		}
	}
}

// translation turns what a terminal sends into what the editor takes.
type translation struct {
	held    []byte // the beginning of a sequence
	pasting bool
	after   bool // an end of line was pasted: a second half of it is skipped
}

// next translates further bytes.
func (t *translation) next(in []byte) (out []byte) {
	in = append(t.held, in...)
	t.held = nil
	for len(in) > 0 {
		if in[0] == '\x1b' {
			if n := t.sequence(in, &out); n > 0 {
				in = in[n:]
				continue
			}
			if len(in) < len(pasteBegin) && bytes.HasPrefix([]byte(pasteBegin[:5]), in) && len(in) > 2 || t.pasting && bytes.HasPrefix([]byte(pasteEnd), in) {
				t.held = bytes.Clone(in) // its rest is under way
				return out
			}
		}
		b := in[0]
		in = in[1:]
		switch {
		case !t.pasting:
			out = append(out, b)
		case b == '\n' && t.after:
		case b == '\r' || b == '\n':
			out = append(out, anotherLine...)
		case b == '\t':
			out = append(out, "    "...)
		case b >= ' ' && b != 0x7f:
			out = append(out, b)
		}
		t.after = b == '\r'
	}
	return out
}

// sequence translates one that in begins with; 0: it is none of those.
func (t *translation) sequence(in []byte, out *[]byte) int {
	for _, s := range []struct {
		seq     string
		becomes string
		pasting bool
	}{
		{pasteBegin, "", true}, {pasteEnd, "", false}, {altEnter, anotherLine, t.pasting}, {altLinefeed, anotherLine, t.pasting},
	} {
		if bytes.HasPrefix(in, []byte(s.seq)) && (s.becomes == "" || !t.pasting) {
			*out = append(*out, s.becomes...)
			t.pasting = s.pasting
			return len(s.seq)
		}
	}
	return 0
}
