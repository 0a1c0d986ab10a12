package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/internal/output"
)

// echo answers with the question, and remembers what it was asked.
type echo struct {
	asked []conversation
	name  string
	plans []string
}

type conversation []message

func (e *echo) answer(_ context.Context, o *askOptions, c []message, emit func(string) error) (answered, error) {
	e.asked = append(e.asked, c)
	e.plans = append(e.plans, o.scaling)
	switch question := c[len(c)-1].content; question {
	case "fail":
		return answered{}, errors.New("broken")
	case "much":
		return answered{dropped: 2, cut: true}, emit("re: much")
	default:
		return answered{}, emit("re: " + question)
	}
}

func (e *echo) models(context.Context) ([]string, error) { return []string{"echo", "other"}, nil }
func (e *echo) about() (string, string)                  { return e.name, "repeats" }
func (e *echo) canSearch(plan string) error              { return checkPlan(plan, noLimits) }
func (e *echo) close() error                             { return nil }
func (e *echo) use(_ context.Context, name string) error {
	if name == "none" {
		return errors.New("no such model")
	}
	e.name = name
	return nil
}

// talk puts lines to echo, as a person or through pipes.
func talk(t *testing.T, interactive bool, o askOptions, text string) (e *echo, out, errOut string, err error) {
	t.Helper()
	e = &echo{name: "echo"}
	var o1, o2 bytes.Buffer
	in, _ := newInput(strings.NewReader(text), &o1, false)
	c := &chat{answerer: e, options: &o, in: in, out: &o1, errOut: &o2, interactive: interactive}
	err = c.run(t.Context())
	return e, o1.String(), o2.String(), err
}

func (e *echo) lengths() (n []int) {
	for _, c := range e.asked {
		n = append(n, len(c))
	}
	return n
}

func TestChatRemembersAndForgets(t *testing.T) {
	e, out, errOut, err := talk(t, false, askOptions{system: "be brief"}, "one\n\nfail\ntwo\n/clear\nthree\n/quit\nnever\n")
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
	e, out, _, err := talk(t, true, askOptions{}, "one\nmuch\nthree\nmuch\nfour\n")
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
		e, _, _, err := talk(t, false, askOptions{}, text)
		if err != nil || len(e.asked) != 1 || e.asked[0][0].content != want {
			t.Errorf("%q is %v, %v", text, e.asked, err)
		}
	}
	if _, _, _, err := talk(t, false, askOptions{}, "\"\"\"one\ntwo\n"); err == nil || !strings.Contains(err.Error(), "has no end") {
		t.Errorf("a text without its end: error %v", err)
	}
}

func TestCommandsOfAChat(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"/help", "/scaling [PLAN]"},
		{"/?", "(now: echo)"},
		{"/help me", "error: /help takes nothing behind it"},
		{"/hlp", "error: there is no command /hlp; did you mean /help?"},
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
		{"/temperature warm", `error: "warm" is no number`},
		{"/etc/passwd what is it?", "re: /etc/passwd what is it?"},
		{"1/2 + 1/3", "re: 1/2 + 1/3"},
	} {
		e, out, _, err := talk(t, true, askOptions{}, c.line+"\n/exit\nnever")
		if err != nil || !strings.Contains(out, c.want) || strings.Contains(out, "never") {
			t.Errorf("%s: %q, %v; want %q", c.line, out, err, c.want)
		}
		if asked := !strings.HasPrefix(c.want, "re:"); asked != (len(e.asked) == 0) {
			t.Errorf("%s: %d questions were asked", c.line, len(e.asked))
		}
	}
	e, _, _, _ := talk(t, true, askOptions{}, "/system Be brief.\n/scaling sc4\none\n/system none\n/scaling none\ntwo\n")
	if want := []int{2, 3}; !slices.Equal(e.lengths(), want) || !slices.Equal(e.plans, []string{"sc4", ""}) {
		t.Errorf("%v messages were sent with the plans %q", e.lengths(), e.plans)
	}
}

func TestNoControlCharacterOfAModelReachesATerminal(t *testing.T) {
	if got := output.WithoutControls("a\x1b[2Jb\u009bc\td\r\n\x00é"); got != "a[2Jbc\td\né" {
		t.Errorf("%q is left", got)
	}
	_, out, _, _ := talk(t, true, askOptions{}, "a\x1b[31mb\n")
	if strings.ContainsRune(out, '\x1b') {
		t.Errorf("a chat prints %q", out)
	}
}

func TestALineHasABound(t *testing.T) {
	in, _ := newInput(strings.NewReader(strings.Repeat("x", maxQuestion+1)+"\n"), io.Discard, false)
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

func TestTheLocalModelOfAChatCanChange(t *testing.T) {
	var out bytes.Buffer
	root := newRoot(&out, &out)
	root.SetIn(strings.NewReader("/model\nWhat is 12 * 7?\n/model lutra-tiny-s\nWhat is 12 * 7?\n/scaling bon4\nWhat is 12 * 7?\n/model nowhere.gguf\n/model\n"))
	root.SetArgs([]string{"chat"})
	err := root.ExecuteContext(t.Context())
	got := out.String()
	if err == nil || strings.Count(got, "12*7=84.\nAnswer: 84\n") != 3 || !strings.Contains(got, "model: lutra-tiny-l, of lutra-tiny-l, lutra-tiny-s\n") ||
		!strings.Contains(got, "(lutra-tiny-s: a small demonstration") || !strings.Contains(got, "there is no file nowhere.gguf") ||
		!strings.Contains(got, "model: lutra-tiny-s, of") {
		t.Errorf("%s%v", got, err)
	}
}

// api is a server of some models whose chats stream text, and then wait for the
// client to leave where it asks so.
func api(t *testing.T, owner string, models ...string) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		var list []string
		for _, m := range models {
			list = append(list, `{"id":"`+m+`","owned_by":"`+owner+`"}`)
		}
		_, _ = io.WriteString(w, `{"data":[`+strings.Join(list, ",")+`]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			openai.ChatCompletionRequest
			Truncation string `json:"truncation"`
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.Messages) == 0 {
			t.Errorf("a request without messages: %v", err)
			return
		}
		if want := map[bool]string{true: "auto"}[owner == "lutra"]; asked.Truncation != want {
			t.Errorf("a server of %s is asked for truncation %q", owner, asked.Truncation)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if len(asked.Messages) > 2 && owner == "lutra" {
			_, _ = io.WriteString(w, `data: {"choices":[],"truncation":{"dropped_messages":2}}`+"\n\n")
		}
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"Let me think"}}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		if strings.HasSuffix(asked.Messages[len(asked.Messages)-1].Content, "for ever") {
			<-r.Context().Done()
			return
		}
		if strings.HasSuffix(asked.Messages[len(asked.Messages)-1].Content, "break off") {
			return
		}
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`+"\n\ndata: [DONE]\n\n")
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestAServerTellsWhatItHasForgottenAndWhatItHasNotSaid(t *testing.T) {
	a, err := newRemote(t.Context(), &askOptions{url: api(t, "lutra", "m").URL, name: defaultName})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	emit := func(piece string) error { text.WriteString(piece); return nil }
	long := []message{{roleUser, "one"}, {roleAssistant, "two"}, {roleUser, "three"}}
	if done, err := a.answer(t.Context(), &askOptions{}, long, emit); err != nil || done != (answered{dropped: 2, cut: true}) {
		t.Errorf("a long conversation: %+v, %v", done, err)
	}
	_, err = a.answer(t.Context(), &askOptions{}, []message{{roleUser, "break off"}}, emit)
	if err == nil || !strings.Contains(err.Error(), "broke off") {
		t.Errorf("a connection that ends too early: error %v", err)
	}
}

func TestServersAreAskedUnderTheirOwnNames(t *testing.T) {
	other := api(t, "vllm", "falcon", "llama")
	if got := mustLutra(t, "ask", "--url", other.URL, "hello"); got != "Let me think\n" {
		t.Errorf("ask = %q", got)
	}
	ours := api(t, "lutra", "lutra-tiny-l")
	if got := mustLutra(t, "chat", "--url", ours.URL); got != "" {
		t.Errorf("a chat without questions says %q", got)
	}
	a, err := newRemote(t.Context(), &askOptions{url: ours.URL, name: defaultName})
	if err != nil {
		t.Fatal(err)
	}
	if name, words := a.about(); name != "lutra-tiny-l" || words != "at "+ours.URL+"/v1" {
		t.Errorf("about = %q, %q", name, words)
	}
	if err := a.use(t.Context(), "lutra-tiny-x"); err == nil || !strings.Contains(err.Error(), "did you mean lutra-tiny-l?") {
		t.Errorf("a model it has not: error %v", err)
	}
	for _, c := range []struct{ line, want string }{
		{"ask --url " + other.URL + " --scaling bon8 hi", "is no lutra server"},
		{"ask --url localhost:8080 hi", `--url: "localhost:8080" is no address such as`},
		{"ask --url http://127.0.0.1:1 hi", "no server answers at http://127.0.0.1:1/v1: "},
		{"ask --api-key k hi", "--api-key is for --url"},
		{"ask --model-name m hi", "--model-name is for --url"},
		{"ask --url http://h --model m hi", "the one of a server is --model-name"},
	} {
		if status, got := complain(t, strings.Fields(c.line)...); status == 0 || !strings.Contains(got, c.want) {
			t.Errorf("lutra %s: status %d, %s", c.line, status, got)
		}
	}
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"message":"no key","code":"invalid_api_key"}}`)
	}))
	t.Cleanup(locked.Close)
	if _, got := complain(t, "ask", "--url", locked.URL, "hi"); !strings.Contains(got, "wants an API key, or another one: --api-key KEY") {
		t.Errorf("without its key: %s", got)
	}
}

func TestQuestionsOfAskAreChecked(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"ask --temperature -1 hi", "--temperature: -1 is outside 0 to 2"},
		{"ask --temperature NaN hi", "--temperature: NaN is outside 0 to 2"},
		{"ask --top-p 1.5 hi", "--top-p: 1.5 is outside 0 to 1"},
		{"ask --max-tokens -1 hi", "--max-tokens: -1 is negative"},
	} {
		if status, got := complain(t, strings.Fields(c.line)...); status != 2 || !strings.Contains(got, c.want) {
			t.Errorf("lutra %s: status %d, %s", c.line, status, got)
		}
	}
	if status, got := complain(t, "ask", " "); status != 2 || !strings.Contains(got, "QUESTION is empty") {
		t.Errorf("an empty question: status %d, %s", status, got)
	}
	var out bytes.Buffer
	root := newRoot(&out, os.Stderr)
	root.SetIn(strings.NewReader("What is 12 * 7?\n"))
	root.SetArgs([]string{"ask", "-"})
	if err := root.ExecuteContext(t.Context()); err != nil || out.String() != "12*7=84.\nAnswer: 84\n" {
		t.Errorf("ask - = %q, %v", out.String(), err)
	}
}

func TestALongConversationWithAModelHereLosesItsBeginning(t *testing.T) {
	const questions = 60 // of 17 tokens and as much of an answer: twice the context
	var out, errOut bytes.Buffer
	root := newRoot(&out, &errOut)
	root.SetIn(strings.NewReader(strings.Repeat("What is 12 * 7?\n", questions)))
	root.SetArgs([]string{"chat", "--model", "lutra-tiny-s", "--max-tokens", "16"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, &errOut)
	}
	if n := strings.Count(errOut.String(), "the model reads only the end"); n != 1 {
		t.Errorf("it was said %d times that the beginning is forgotten: %s", n, &errOut)
	}
}
