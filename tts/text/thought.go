package text

import (
	"strings"
)

// The marks between which thinking models put what they think, as DeepSeek-R1
// and Qwen3 do. Chat templates may write the first one themselves.
const (
	ThinkBegin = "<think>"
	ThinkEnd   = "</think>"
)

// NewThought returns what divides an answer that goes on from a prompt: in a thought, or in
// the midst of its thought or answer.
func NewThought(inThought, midway bool) Thought {
	t := Thought{begun: midway}
	if inThought {
		t.state = thinking
	} else if midway {
		t.state = answering
	}
	return t
}

// thinkingState is how far an answer has come.
type thinkingState uint8

const (
	undecided thinkingState = iota // white space, or what may become the first mark
	thinking
	answering
)

// Thought divides one answer's text as it comes.
type Thought struct {
	state thinkingState
	begun bool   // the part under way has had more than white space
	held  string // not divided yet
}

// Push takes more text; last says that it is all. What is held back is white
// space, of which it is not known whether it ends a part, and the beginning
// of a mark.
func (t *Thought) Push(text string, last bool) (reasoning, answer string) {
	if t.state == answering && t.begun {
		return "", text
	}
	t.held += text
	if t.state == undecided {
		head := strings.TrimLeft(t.held, " \t\r\n")
		switch {
		case strings.HasPrefix(head, ThinkBegin):
			t.state, t.held = thinking, head[len(ThinkBegin):]
		case !last && strings.HasPrefix(ThinkBegin, head):
			return "", ""
		default:
			t.state, t.begun = answering, true
		}
	}
	if t.state == thinking {
		reasoning = t.think(last)
	}
	if t.state == answering {
		answer, t.held = t.held, ""
		if !t.begun {
			answer = strings.TrimLeft(answer, " \t\r\n")
			t.begun = answer != ""
		}
	}
	return reasoning, answer
}

// think takes from held what is certainly a thought, and the mark that ends it.
func (t *Thought) think(last bool) string {
	out, rest, ended := strings.Cut(t.held, ThinkEnd)
	if !ended && !last {
		keep := len(ThinkEnd) - 1
		for keep > 0 && !strings.HasSuffix(out, ThinkEnd[:keep]) {
			keep--
		}
		out = out[:len(out)-keep]
	}
	out = strings.TrimRight(out, " \t\r\n")
	t.held = t.held[len(out):]
	if !t.begun {
		out = strings.TrimLeft(out, " \t\r\n")
		t.begun = out != ""
	}
	if ended {
		t.state, t.begun, t.held = answering, false, rest
	} else if last {
		t.held = ""
	}
	return out
}

// Answer returns what a model has written after the thought that its text begins
// with: all of it without one, nothing while the thought lasts. inThought tells that
// the prompt has begun the thought (Opening.Thinking).
func Answer(text string, inThought bool) string {
	if !inThought && !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), ThinkBegin) {
		return text
	}
	_, rest, _ := strings.Cut(text, ThinkEnd)
	return rest
}

// EndsInThought reports whether a text ends with the mark that begins a thought.
func EndsInThought(text string) bool {
	return strings.HasSuffix(strings.TrimRight(text, " \t\r\n"), ThinkBegin)
}
