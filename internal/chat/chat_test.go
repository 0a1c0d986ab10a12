package chat

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/output"
)

// echo answers with the question, and remembers what it was asked.
type echo struct {
	asked   []conversation
	options []Options
	name    string
}

type conversation []Message

func (e *echo) Answer(_ context.Context, o *Options, c []Message, emit func(Piece) error) (Answered, error) {
	e.asked = append(e.asked, c)
	e.options = append(e.options, *o)
	last := c[len(c)-1]
	said := "re: " + last.Content
	name, arguments, isCall := strings.Cut(strings.TrimPrefix(last.Content, "call "), " ")
	switch {
	case last.Content == "fail":
		return Answered{}, errors.New("broken")
	case last.Content == "much":
		return Answered{Dropped: 2, Finish: "length"}, emit(Piece{Text: said})
	case last.Content == "think":
		return Answered{}, errors.Join(emit(Piece{Thought: "Hm, \x1b[2J"}), emit(Piece{Thought: "well.", Text: said}))
	case isCall && strings.HasPrefix(last.Content, "call "):
		return Answered{Finish: "tool_calls", Calls: []Call{newCall("1", name, arguments)}}, nil
	default:
		return Answered{}, emit(Piece{Text: said})
	}
}

func (e *echo) Models(context.Context) ([]string, error) { return []string{"echo", "other"}, nil }
func (e *echo) About() (string, string)                  { return e.name, "repeats" }
func (e *echo) CanSearch(plan string) error              { return checkPlan(plan, noLimits) }
func (e *echo) Close() error                             { return nil }
func (e *echo) Greedy(o *Options) bool                   { return o.Sampling.Or(o.builtIn()).Text("temperature") == "0" }
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
	in, _ := newInput(strings.NewReader(text), &o1, false, nil)
	c := &session{Answerer: e, options: &o, in: in, out: &o1, errOut: &o2, interactive: interactive, agreed: map[string]bool{}}
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
		"a path\\\n":                        "a path\\",
	} {
		e, _, _, err := talk(t, false, Options{}, text)
		if err != nil || len(e.asked) != 1 || e.asked[0][0].Content != want {
			t.Errorf("%q is %v, %v", text, e.asked, err)
		}
	}
	for text, want := range map[string]string{
		"one\\\ntwo\\\n\\\nthree\n":        "one\ntwo\n\nthree",
		"one\\\\\nend\n":                   "one\\\nend",
		"/system\\\nis no command\n":       "/system\nis no command",
		"\"\"\"one\\\ntwo\n three\"\"\"\n": "one\ntwo\n three",
	} {
		e, _, _, err := talk(t, true, Options{}, text)
		if err != nil || len(e.asked) != 1 || e.asked[0][0].Content != want {
			t.Errorf("at a terminal %q is %q, %v", text, e.asked, err)
		}
	}
	if _, _, _, err := talk(t, false, Options{}, "\"\"\"one\ntwo\n"); err == nil || !strings.Contains(err.Error(), "has no end") {
		t.Errorf("a text without its end: error %v", err)
	}
}

func TestCommandsOfAChat(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, c := range []struct{ line, want string }{
		{"/help", "/search [PLAN]"},
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
		{"/search", "search: none"},
		{"/scaling bon8", "(search: best_of_n, n 8)"},
		{"/search beam16x4", "(search: beam_search, n 16, width 4)"},
		{"/search best_of_n 4", "(search: best_of_n, n 4 (best_of_n;n=4))"},
		{"/search dvts 8 4", "(search: dvts, n 8, width 4 (dvts;n=8;width=4))"},
		{"/search dvts 8 4 2", "error: want a plan such as beam16x4, or METHOD N WIDTH"},
		{"/search beam_search 6 4", "error: n: 6 is not"},
		{"/search bon", `error: there is no method "bon"`},
		{"/search none", "(search: none)"},
		{"/search off", "(search: none)"},
		{"/set", "temperature         default  0 to 2"},
		{"/set temperature", "temperature: default (0 to 2"},
		{"/set temperature 0.5", "(temperature: 0.5)"},
		{"/set parameter temperature 0.5", "(temperature: 0.5)"},
		{"/set temperature 3", "error: temperature: 3 is outside 0 to 2"},
		{"/set temperature nan", "error: temperature: NaN is outside 0 to 2"},
		{"/set temperature warm", `error: temperature: "warm" is not a number`},
		{"/set temperatur 1", `error: there is no setting "temperatur"; did you mean temperature?`},
		{"/set top_p 0.9", "(top_p: 0.9)"},
		{"/set top_p default", "(top_p: default)"},
		{"/set top_k 40", "(top_k: 40)"},
		{"/set top_k -1", `error: top_k: -1 is not a whole number of 0 to`},
		{"/set min_p 0.05", "(min_p: 0.05)"},
		{"/set presence_penalty -2", "(presence_penalty: -2)"},
		{"/set frequency_penalty 2.5", "outside -2 to 2"},
		{"/set repetition_penalty 0", "outside 0.01 to 10"},
		{"/set max_tokens 12", "(max_tokens: 12)"},
		{"/set seed 7", "(seed: 7)"},
		{"/set seed -7", "is not a whole number, not negative"},
		{"/set stop END", `(stop: ["END"])`},
		{`/set stop ["a b", "\n"]`, `(stop: ["a b","\n"])`},
		{`/set stop ["a"`, "want a JSON list of at most 4 texts"},
		{"/set thinking off", "(thinking: off)"},
		{"/set thinking maybe", `"maybe" is none of on, off, default`},
		{"/set method best_of_n", "(method: best_of_n)"},
		{"/set n 8", "error: n: there is no search: /search METHOD chooses one"},
		{"/tools", "tools: none"},
		{"/tools nowhere.json", "there is no file nowhere.json"},
		{"/show", "model: echo: repeats\nsystem: none\nsearch: none\n"},
		{"/undo", "error: there is no question before"},
		{"/retry", "error: there is no question before"},
		{"/retry me", "error: /retry takes no argument"},
		{"/save", "error: /save: NAME is missing"},
		{"/save ../x", `error: "../x" is no name`},
		{"/load", "conversations: none"},
		{"/load x", `error: no conversation is kept as "x"; /load lists them`},
		{"/bye now", "error: /bye takes no argument"},
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
	if want := []int{2, 3}; !slices.Equal(e.lengths(), want) || e.options[0].Scaling != "sc4" || e.options[1].Scaling != "" {
		t.Errorf("%v messages were sent with %+v", e.lengths(), e.options)
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
	in, _ := newInput(strings.NewReader(strings.Repeat("x", MaxQuestion+1)+"\n"), io.Discard, false, nil)
	if _, err := in.line("", true); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a line beyond it: %v", err)
	}
	in, _ = newInput(strings.NewReader("one\r\ntwo"), io.Discard, false, nil)
	for _, want := range []string{"one", "two"} {
		if got, err := in.line("", true); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if _, err := in.line("", true); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestTabCompletesCommandsAndTheirArguments(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	c := &session{Answerer: &echo{name: "echo"}, options: &Options{}}
	if _, err := saveTranscript(c, "monday"); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{
		"/sc":             {"/scaling "},
		"/b":              {"/bye"},
		"/search be":      {"/search beam16x4", "/search best_of_n", "/search beam_search"},
		"/scaling":        {"/scaling "},
		"/model o":        {"/model other"},
		"/set te":         {"/set temperature"},
		"/set thinking o": {"/set thinking on", "/set thinking off"},
		"/load m":         {"/load monday"},
		"/load monday":    nil,
		"hello":           nil,
		"":                nil,
	} {
		if got := c.complete(line); !slices.Equal(got, want) {
			t.Errorf("%q is completed to %q, want %q", line, got, want)
		}
	}
}

func TestAQuestionIsAskedAgainOrForgotten(t *testing.T) {
	e, out, _, err := talk(t, true, Options{Seed: 5}, "one\ntwo\n/retry\n/undo\nfail\n/retry\nthree\n")
	if want := []int{1, 3, 3, 3, 1, 3}; err != nil || !slices.Equal(e.lengths(), want) {
		t.Errorf("conversations had %v messages, want %v; %v", e.lengths(), want, err)
	}
	if e.options[1].Seed != 5 || e.options[2].Seed != 6 || e.asked[2][2].Content != "two" || e.asked[4][0].Content != "one" {
		t.Errorf("asked %+v", e.asked)
	}
	for _, notice := range []string{"(at temperature 0 the answer is the same: /set temperature 0.7)", "(forgotten: two)"} {
		if !strings.Contains(out, notice) {
			t.Errorf("chat said %q, not %q", out, notice)
		}
	}
}

func TestAConversationIsKeptAndGoesOn(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	_, out, _, _ := talk(t, true, Options{}, "/system Be brief.\n/set temperature 0.5\n/set stop [\"a\", \"b\"]\n/set thinking on\n/search beam16x4\n/model other\none\n/save my-chat.1\n")
	path := filepath.Join(dir, "lutra", "chats", "my-chat.1.json")
	info, err := os.Stat(path)
	if err != nil || !strings.Contains(out, "/load my-chat.1 goes on with it") || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Fatalf("%s%v", out, err)
	}
	e, out, _, err := talk(t, true, Options{Sampling: sampling.Config{TopK: new(3)}}, "/load\n/load my-chat\n/load my-chat.1\ntwo\n")
	if err != nil || !strings.Contains(out, "conversations: my-chat.1") || !strings.Contains(out, "did you mean my-chat.1?") || len(e.asked) != 1 {
		t.Fatalf("%s%v", out, err)
	}
	o := e.options[0]
	if e.name != "other" || len(e.asked[0]) != 4 || o.System != "Be brief." || o.Sampling.String() != "temperature=0.5" || len(o.Stop) != 2 || o.Scaling != "beam16x4" || !*o.Thinking {
		t.Errorf("%s was asked %v with %+v", e.name, e.asked, o)
	}
	for text, want := range map[string]string{
		"{":                                  "is no conversation",
		`{"messages":[{"role":"root"}]}`:     `message 1 has the role "root"`,
		`{"settings":{"temperature":"9"}}`:   "temperature: 9 is outside",
		`{"settings":{"warmth":"9"}}`:        `there is no setting "warmth"`,
		`{"settings":{"n":"9"}}`:             "is part of the search",
		`{"test_time_scaling":"magic"}`:      `there is no method "magic"`,
		strings.Repeat(" ", maxTranscript+1): "more than",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		e, out, _, _ := talk(t, true, Options{System: "mine"}, "/load my-chat.1\none\n")
		if !strings.Contains(out, want) || len(e.asked) != 1 || len(e.asked[0]) != 2 || !e.options[0].Sampling.Empty() {
			t.Errorf("%.40q: %s, want %s; asked %v", text, out, want, e.asked)
		}
	}
}

func TestAConversationThatCouldNotBeReadAgainIsNotKept(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	c := &session{Answerer: &echo{name: "echo"}, options: &Options{}, turns: []Message{{Role: RoleUser, Content: strings.Repeat("x", maxTranscript)}}}
	if path, err := saveTranscript(c, "long"); err == nil || !strings.Contains(err.Error(), "1 messages in 1677") || len(transcripts()) != 0 {
		t.Errorf("it is kept as %s, %v", path, err)
	}
}

func TestAThoughtIsShownAtATerminalAlone(t *testing.T) {
	_, out, _, _ := talk(t, true, Options{}, "think\n")
	if !strings.Contains(out, "Thinking...\nHm, [2Jwell.\n...done thinking.\n\nre: think\n") {
		t.Errorf("a terminal shows %q", out)
	}
	if _, out, _, _ = talk(t, false, Options{}, "think\n"); out != "re: think\n" {
		t.Errorf("a pipe gets %q", out)
	}
}

func TestAPlanKeepsWhatIsNotChanged(t *testing.T) {
	for _, c := range []struct{ lines, want string }{
		{"/search bon8\n/set n 16", "best_of_n;n=16"},
		{"/search beam16x4\n/set width 2", "beam_search;n=16;width=2"},
		{"/search best_of_n;n=4;answer.extract=\"regex:;n=(.)\"\n/set n 8", "best_of_n;answer.extract=\"regex:;n=(.)\";n=8"},
		{"/search sc4\n/set method best_of_n", "best_of_n;n=4"},
		{"/search sc4\n/set n default", "self_consistency"},
		{"/search sc4\n/set method none", ""},
		{"/search sc4\n/set n 0", "sc4"},
	} {
		e, out, _, _ := talk(t, true, Options{}, c.lines+"\none\n")
		if got := e.options[0].Scaling; got != c.want {
			t.Errorf("%s: %q, want %q: %s", c.lines, got, c.want, out)
		}
	}
}
