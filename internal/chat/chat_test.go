package chat

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/output"
)

// echo answers with the question, and remembers what it was asked.
type echo struct {
	asked []conversation
	name  string
	plans []string
}

type conversation []Message

func (e *echo) Answer(_ context.Context, o *Options, c []Message, emit func(string) error) (Answered, error) {
	e.asked = append(e.asked, c)
	e.plans = append(e.plans, o.Scaling)
	switch question := c[len(c)-1].Content; question {
	case "fail":
		return Answered{}, errors.New("broken")
	case "much":
		return Answered{Dropped: 2, Finish: "length"}, emit("re: much")
	default:
		return Answered{}, emit("re: " + question)
	}
}

func (e *echo) Models(context.Context) ([]string, error) { return []string{"echo", "other"}, nil }
func (e *echo) About() (string, string)                  { return e.name, "repeats" }
func (e *echo) CanSearch(plan string) error              { return checkPlan(plan, noLimits) }
func (e *echo) Close() error                             { return nil }
func (e *echo) Use(_ context.Context, name string) error {
	if name == "none" {
		return errors.New("no such model")
	}
	e.name = name
	return nil
}

// talk puts lines to echo, as a person or through pipes.
func talk(t *testing.T, interactive bool, o Options, text string) (e *echo, out, errOut string, err error) {
	t.Helper()
	e = &echo{name: "echo"}
	var o1, o2 bytes.Buffer
	in, _ := newInput(strings.NewReader(text), &o1, false)
	c := &session{Answerer: e, options: &o, in: in, out: &o1, errOut: &o2, interactive: interactive}
	err = c.run(t.Context(), nil)
	return e, o1.String(), o2.String(), err
}

func (e *echo) lengths() (n []int) {
	for _, c := range e.asked {
		n = append(n, len(c))
	}
	return n
}

func TestChatRemembersAndForgets(t *testing.T) {
	e, out, errOut, err := talk(t, false, Options{System: "be brief"}, "one\n\nfail\ntwo\n/clear\nthree\n/quit\nnever\n")
	// system + one; + answer + fail; the failed turn is forgotten; after /clear only the system message is left.
	if want := []int{2, 4, 4, 2}; !slices.Equal(e.lengths(), want) {
		t.Errorf("conversations had %v messages, want %v", e.lengths(), want)
	}
	if want := "re: one\nre: two\nre: three\n"; out != want {
		t.Errorf("chat printed %q, want the answers alone: %q", out, want)
	}
	if err == nil || !strings.Contains(errOut, "error: broken") {
		t.Errorf("a failed answer: error %v, said %q", err, errOut)
	}
}

func TestAChatForgetsWhatNoLongerFits(t *testing.T) {
	e, out, _, err := talk(t, true, Options{}, "one\nmuch\nthree\nmuch\nfour\n")
	if want := []int{1, 3, 3, 5, 5}; err != nil || !slices.Equal(e.lengths(), want) {
		t.Errorf("conversations had %v messages, want %v; %v", e.lengths(), want, err)
	}
	for _, notice := range []string{"(the model reads only the end of this conversation from now on; /clear begins a new one)", "(cut off: "} {
		if !strings.Contains(out, notice) {
			t.Errorf("chat said %q, not %q", out, notice)
		}
	}
	if n := strings.Count(out, "from now on"); n != 1 {
		t.Errorf("that was said %d times", n)
	}
}

func TestSeveralLinesAreOneQuestion(t *testing.T) {
	for text, want := range map[string]string{
		"\"\"\"one\ntwo\n\nthree\"\"\"\n":   "one\ntwo\n\nthree",
		"\"\"\"\none\n\"\"\"\n":             "one",
		"\"\"\"one line\"\"\"\n":            "one line",
		"\"\"\"/quit\nis a command\"\"\"\n": "/quit\nis a command",
		"two \"\"\" within\n":               "two \"\"\" within",
	} {
		e, _, _, err := talk(t, false, Options{}, text)
		if err != nil || len(e.asked) != 1 || e.asked[0][0].Content != want {
			t.Errorf("%q is %v, %v", text, e.asked, err)
		}
	}
	if _, _, _, err := talk(t, false, Options{}, "\"\"\"one\ntwo\n"); err == nil || !strings.Contains(err.Error(), "has no end") {
		t.Errorf("a text without its end: error %v", err)
	}
}

func TestCommandsOfAChat(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"/help", "/scaling [PLAN]"},
		{"/?", "(now: echo)"},
		{"/help me", "error: /help takes no argument"},
		{"/hlp", "error: there is no command /hlp; did you mean /help?"},
		{"/scalingbon8", "error: there is no command /scalingbon8; /help lists them"},
		{"/nonsense", "error: there is no command /nonsense; /help lists them"},
		{"/system", "system message: none"},
		{"/system Be brief.", "(system message: Be brief.)"},
		{"/model", "model: echo, of echo, other"},
		{"/model other", "(other: repeats)"},
		{"/model none", "error: no such model"},
		{"/scaling", "scaling: none"},
		{"/scaling bon8", "(scaling: bon8)"},
		{"/scaling bon", `error: there is no method "bon"`},
		{"/scaling none", "(scaling: none)"},
		{"/temperature", "temperature: 0"},
		{"/temperature 0.5", "(temperature: 0.5)"},
		{"/temperature 3", "error: 3 is outside 0 to 2"},
		{"/temperature nan", "error: NaN is outside 0 to 2"},
		{"/temperature warm", `error: "warm" is not a number`},
		{"/etc/passwd what is it?", "re: /etc/passwd what is it?"},
		{"1/2 + 1/3", "re: 1/2 + 1/3"},
	} {
		e, out, _, err := talk(t, true, Options{}, c.line+"\n/exit\nnever")
		if err != nil || !strings.Contains(out, c.want) || strings.Contains(out, "never") {
			t.Errorf("%s: %q, %v; want %q", c.line, out, err, c.want)
		}
		if asked := !strings.HasPrefix(c.want, "re:"); asked != (len(e.asked) == 0) {
			t.Errorf("%s: %d questions were asked", c.line, len(e.asked))
		}
	}
	e, _, _, _ := talk(t, true, Options{}, "/system Be brief.\n/scaling sc4\none\n/system none\n/scaling none\ntwo\n")
	if want := []int{2, 3}; !slices.Equal(e.lengths(), want) || !slices.Equal(e.plans, []string{"sc4", ""}) {
		t.Errorf("%v messages were sent with the plans %q", e.lengths(), e.plans)
	}
}

func TestNoControlCharacterOfAModelReachesATerminal(t *testing.T) {
	if got := output.WithoutControls("a\x1b[2Jb\u009bc\td\r\n\x00é"); got != "a[2Jbc\td\né" {
		t.Errorf("%q is left", got)
	}
	_, out, _, _ := talk(t, true, Options{}, "a\x1b[31mb\n")
	if strings.ContainsRune(out, '\x1b') {
		t.Errorf("a chat prints %q", out)
	}
}

func TestALineHasABound(t *testing.T) {
	in, _ := newInput(strings.NewReader(strings.Repeat("x", MaxQuestion+1)+"\n"), io.Discard, false)
	if _, err := in.line(""); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a line beyond it: %v", err)
	}
	in, _ = newInput(strings.NewReader("one\r\ntwo"), io.Discard, false)
	for _, want := range []string{"one", "two"} {
		if got, err := in.line(""); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if _, err := in.line(""); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestTabCompletesACommandUpToItsArgument(t *testing.T) {
	for line, want := range map[string][]string{
		"/sc":         {"/scaling "},
		"/q":          {"/quit"},
		"/scaling be": {"/scaling best_of_n", "/scaling beam_search"},
		"/scaling":    {"/scaling "},
		"hello":       nil,
		"":            nil,
	} {
		if got := completeLine(line); !slices.Equal(got, want) {
			t.Errorf("%q is completed to %q, want %q", line, got, want)
		}
	}
}
