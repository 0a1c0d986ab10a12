package text

import (
	"strings"

	"github.com/lutra-lm/lutra/models/template"
)

// Marks begin and end the thoughts of a family of models. Chat templates may write the first one themselves.
type Marks struct {
	Begin, End string
	Again      bool // thoughts may stand anywhere in an answer, not at its beginning alone

	// Before and After stand around an answer itself, of models that say for whom each part of a message is.
	Before, After string

	// None says that the model's template knows no thoughts: these are the usual marks.
	None bool
}

var (
	// Think marks the thoughts of DeepSeek-R1, Qwen3 and most others.
	Think = Marks{Begin: "<think>", End: "</think>"}
	// Channel marks the thoughts of Gemma 4, whose empty thought may follow an answer too.
	Channel = Marks{Begin: "<|channel>thought", End: "<channel|>", Again: true}
)

// NewThought returns what divides an answer that goes on from a prompt: in a thought, or in
// the midst of its thought or answer.
func (m Marks) NewThought(inThought, midway bool) Thought {
	t := Thought{marks: m, begun: midway}
	if inThought {
		t.state = thinking
	} else if midway {
		t.state = answering
	}
	switch {
	case m.Before == "":
		t.place = behind
	case midway:
		t.place = inside
	}
	return t
}

// thinkingState is an answer's position: before, in or after its thought.
type thinkingState uint8

const (
	undecided thinkingState = iota // white space, or what may become the first mark
	thinking
	answering
)

// place is where an answer stands by the marks around it.
type place uint8

const (
	ahead place = iota
	inside
	behind // or there are none
)

// Thought divides one answer's text as it comes.
type Thought struct {
	marks Marks
	state thinkingState
	place place
	begun bool   // the part under way has had more than white space
	held  string // not divided yet

	answered bool // the answer has begun
}

// Push takes more text; last says that it is all. What is held back is white
// space, of which it is not known whether it ends a part, and the beginning
// of a mark.
func (t *Thought) Push(text string, last bool) (reasoning, answer string) {
	if t.state == answering && t.begun && t.place == behind && !t.marks.Again {
		return "", text
	}
	t.held += text
	if t.state == undecided {
		head := strings.TrimLeft(t.held, " \t\r\n")
		switch {
		case strings.HasPrefix(head, t.marks.Begin):
			t.state, t.held = thinking, head[len(t.marks.Begin):]
		case !last && strings.HasPrefix(t.marks.Begin, head):
			return "", ""
		default:
			t.state, t.begun = answering, true
		}
	}
	for more := true; more; {
		if t.state == thinking {
			reasoning += t.think(last)
		}
		more = false
		if t.state == answering {
			var said string
			said, more = t.answer(last)
			answer += said
		}
	}
	return reasoning, answer
}

// think takes from held what is certainly a thought, and the mark that ends it.
func (t *Thought) think(last bool) string {
	out, rest, ended := strings.Cut(t.held, t.marks.End)
	if !ended && !last {
		out = out[:len(out)-partial(out, t.marks.End)]
	}
	out = strings.TrimRight(out, " \t\r\n")
	t.held = t.held[len(out):]
	if !t.begun {
		out = strings.TrimLeft(out, " \t\r\n")
		t.begun = out != ""
	}
	if ended {
		t.state, t.begun, t.held = answering, t.answered, rest
	} else if last {
		t.held = ""
	}
	return out
}

// answer takes from held what is certainly no thought; more: a thought follows it.
func (t *Thought) answer(last bool) (out string, more bool) {
	out = t.unwrapped(last)
	if t.marks.Again {
		at, end := strings.Index(out, t.marks.Begin), strings.Index(out, t.marks.End)
		switch {
		case end >= 0 && (at < 0 || end < at): // which ends nothing
			out, t.held, more = out[:end], out[end+len(t.marks.End):], true
		case at >= 0:
			out, t.held, more = out[:at], out[at+len(t.marks.Begin):], true
			t.state = thinking
		case !last:
			n := len(out) - max(partial(out, t.marks.Begin), partial(out, t.marks.End))
			out, t.held = out[:n], out[n:]
		}
	}
	if !t.begun {
		out = strings.TrimLeft(out, " \t\r\n")
		t.begun = out != ""
	}
	t.answered = t.answered || t.begun
	if t.state == thinking {
		t.begun = false
	}
	return out, more
}

// unwrapped takes from held what is certainly of the answer, without the marks around it.
func (t *Thought) unwrapped(last bool) (out string) {
	if t.place == ahead {
		head := strings.TrimLeft(t.held, " \t\r\n")
		rest, marked := strings.CutPrefix(head, t.marks.Before)
		switch {
		case marked:
			t.held, t.place = rest, inside
		case strings.HasPrefix(t.marks.Before, head) && !last:
			return ""
		default:
			t.place = behind
		}
	}
	out, t.held = t.held, ""
	if t.place == behind || t.marks.After == "" {
		return out
	}
	mark := template.Marks(t.marks.After)[0]
	at := strings.Index(out, mark)
	if at < 0 {
		n := partial(out, mark)
		if last {
			n = 0
		}
		out, t.held = out[:len(out)-n], out[len(out)-n:]
		return out
	}
	out, t.held = out[:at], out[at:]
	n := 0
	for n < min(len(t.held), len(t.marks.After)) && t.held[n] == t.marks.After[n] {
		n++
	}
	if n == len(t.held) && n < len(t.marks.After) && !last {
		return out
	}
	if n < len(t.held) { // something else follows: marks of After that are whole
		n = template.MarkStart(t.marks.After, n)
	}
	out, t.held, t.place = out+t.held[n:], "", behind
	return out
}

// partial returns how many bytes at the end of text begin a mark.
func partial(text, mark string) int {
	n := min(len(mark)-1, len(text))
	for n > 0 && !strings.HasSuffix(text, mark[:n]) {
		n--
	}
	return n
}

// Answer returns what a model has written without its thoughts: nothing while the first one
// lasts. inThought tells that the prompt has begun it (Opening.Thinking).
func (m Marks) Answer(text string, inThought bool) string {
	if m.Again || m.Before != "" {
		t := m.NewThought(inThought, false)
		_, answer := t.Push(text, true)
		return answer
	}
	if !inThought && !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), m.Begin) {
		return text
	}
	_, rest, _ := strings.Cut(text, m.End)
	return rest
}

// EndsInThought reports whether a text ends with the mark that begins a thought.
func (m Marks) EndsInThought(text string) bool {
	return strings.HasSuffix(strings.TrimRight(text, " \t\r\n"), m.Begin)
}
