package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/chat"
)

// said runs a command with an input, and returns what it printed and said.
func said(t *testing.T, in io.Reader, args ...string) (out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	root := Command(&o, &e)
	root.SetIn(in)
	root.SetArgs(args)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Errorf("lutra %q: %v", args, err)
	}
	return o.String(), e.String()
}

func TestAskJoinsWhatIsPipedInWithTheQuestion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("  A box holds 12 eggs.\nAnn buys 7 boxes. \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(name string) *os.File {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	for _, c := range []struct {
		in   io.Reader
		args []string
		want string // the question
	}{
		{open(file), []string{"How many eggs?"}, "A box holds 12 eggs.\nAnn buys 7 boxes.\n\nHow many eggs?"},
		{strings.NewReader("text\n"), []string{" hi "}, "text\n\nhi"},
		{strings.NewReader("text\n"), nil, "text"},
		{strings.NewReader("text\n"), []string{"-"}, "text"},
		{strings.NewReader(" \n"), []string{"hi"}, "hi"},
		{open(os.DevNull), []string{"hi"}, "hi"},
	} {
		if got, err := questionOf(t.Context(), c.args, c.in); err != nil || got != c.want {
			t.Errorf("%q: %q, %v, want %q", c.args, got, err, c.want)
		}
	}
	for want, c := range map[string]struct {
		in   io.Reader
		args []string
	}{
		"QUESTION is missing":                {strings.NewReader("\n"), nil},
		"QUESTION is empty":                  {strings.NewReader("text"), []string{" "}},
		"the question has more than 1048576": {strings.NewReader(strings.Repeat("x", chat.MaxQuestion+1)), []string{"hi"}},
	} {
		if got, err := questionOf(t.Context(), c.args, c.in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %.20q, %v, want %s", c.args, got, err, want)
		}
	}
	if out, _ := said(t, strings.NewReader("A box holds 12 eggs. Ann buys 7 boxes."), "ask", "How many eggs does she have?"); !strings.HasSuffix(out, "Answer: 84\n") {
		t.Errorf("ask answers %q", out)
	}
}

func TestCtrlCEndsTheWaitForAQuestion(t *testing.T) {
	never, _ := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := questionOf(ctx, nil, never); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestAskSaysHowAnAnswerCameAbout(t *testing.T) {
	none := strings.NewReader("")
	server := serving(t, "--addr", "127.0.0.1:0", "--model", "lutra-tiny-s").base
	for _, where := range [][]string{{"--model", "lutra-tiny-s"}, {"--url", server}} {
		ask := func(args ...string) (out, errOut string) {
			t.Helper()
			return said(t, none, append(append([]string{"ask"}, where...), args...)...)
		}
		stats := func(args ...string) (s chat.Stats) {
			t.Helper()
			out, errOut := ask(append(args, "--json")...)
			if err := json.Unmarshal([]byte(out), &s); err != nil || errOut != "" {
				t.Errorf("%q: %v; it said %q", args, err, errOut)
			}
			return s
		}
		if out, errOut := ask("What is 12 * 7?"); out != "12*7=84.\nAnswer: 84\n" || errOut != "" {
			t.Errorf("%q: printed %q and said %q", where, out, errOut)
		}
		if _, errOut := ask("--max-tokens", "2", "What is 12 * 7?"); errOut != "(cut off after 2 tokens; --max-tokens allows more)\n" {
			t.Errorf("%q: of an answer that was cut off it said %q", where, errOut)
		}
		if _, errOut := ask("--scaling", "beam_search;n=4;width=2", "What is 12 * 7?"); !regexp.MustCompile(`^\(beam_search of 4, width 2: 100 % agree, score (0\.9\d|1\.00)\)\n$`).MatchString(errOut) {
			t.Errorf("%q: of a search it said %q", where, errOut)
		}
		plain := stats("What is 12 * 7?")
		if plain.Model != "lutra-tiny-s" || plain.Finish != "stop" || plain.Usage.Prompt < 5 || plain.Usage.Completion < 5 || plain.Method != "single" || plain.Search != nil || plain.Candidates != nil {
			t.Errorf("%q: %+v", where, plain)
		}
		if cut := stats("--max-tokens", "2", "What is 12 * 7?"); cut.Finish != "length" || cut.Usage.Completion != 2 {
			t.Errorf("%q: cut off: %+v", where, cut)
		}
		s := stats("--scaling", "bon4", "--seed", "3", "What is 12 * 7?")
		if s.Method != "best_of_n" || s.Search == nil || s.Search.N != 4 || s.Search.StopReason == "" || s.Usage.Verifier == 0 || len(s.Candidates) < 2 {
			t.Fatalf("%q: a search: %+v", where, s)
		}
		chosen := 0
		for _, c := range s.Candidates {
			if c.Text == "" || c.Score <= 0 || c.Votes < 1 || c.Tokens == 0 || c.Finish != "stop" {
				t.Errorf("%q: a candidate is %+v", where, c)
			}
			if c.Chosen {
				chosen++
				if c.Text != s.Answer || c.Score != s.Search.Score {
					t.Errorf("%q: %+v was chosen, and %q with %v is the answer", where, c, s.Answer, s.Search.Score)
				}
			}
		}
		if chosen != 1 {
			t.Errorf("%q: %d candidates were chosen", where, chosen)
		}
	}
}

func TestClientsTakeServerAndKeyFromTheEnvironment(t *testing.T) {
	server := api(t, "vllm", "falcon", "llama")
	var keys []string
	inner := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Authorization"))
		inner.ServeHTTP(w, r)
	})
	t.Setenv(urlVariable, strings.TrimPrefix(server.URL, "http://"))
	t.Setenv(keyVariable, "secret")
	t.Setenv(keyOfOpenAI, "of another")
	for _, args := range [][]string{{"ask", "hi"}, {"chat"}} {
		keys = nil
		said(t, strings.NewReader(""), args...)
		if len(keys) == 0 || keys[0] != "Bearer secret" {
			t.Errorf("%q asks with %q", args, keys)
		}
	}
	keys = nil
	said(t, strings.NewReader(""), "ask", "--url="+server.URL, "--api-key=mine", "--model", "llama", "hi")
	if len(keys) == 0 || keys[0] != "Bearer mine" {
		t.Errorf("flags go first: %q", keys)
	}
	keys = nil
	if out, _ := said(t, strings.NewReader(""), "ask", "--url=", "What is 12 * 7?"); !strings.Contains(out, "84") || keys != nil {
		t.Errorf("with --url= a model here answers, not %q of a server", out)
	}
	t.Setenv(keyVariable, "")
	said(t, strings.NewReader(""), "ask", "hi")
	if len(keys) == 0 || keys[0] != "" {
		t.Errorf("a server that is not OpenAI's is shown the key %q", keys)
	}
	t.Setenv(urlVariable, "nowhere")
	if status, got := complain(t, "ask", "hi"); status != 2 || !strings.Contains(got, `LUTRA_URL: "nowhere" is not an address`) {
		t.Errorf("status %d, %s", status, got)
	}
}

func TestTheKeyOfOpenAIIsForOpenAIAlone(t *testing.T) {
	t.Setenv(urlVariable, "")
	t.Setenv(keyVariable, "")
	t.Setenv(keyOfOpenAI, "of openai")
	for address, want := range map[string]string{
		"https://api.openai.com/v1": "of openai", "http://api.openai.com": "", "https://api.openai.com.example.org": "", "localhost:1": "",
	} {
		cmd := newAsk()
		if err := cmd.Flags().Parse([]string{"--url", address}); err != nil {
			t.Fatal(err)
		}
		s := ServerFlags{URL: address}
		if err := s.Complete(cmd.Flags()); err != nil || s.Key != want {
			t.Errorf("%s: key %q, %v, want %q", address, s.Key, err, want)
		}
	}
}

func TestModelMeansTheModelThatIsAskedFor(t *testing.T) {
	server := api(t, "vllm", "falcon", "llama")
	for _, args := range [][]string{{"--model", "llama"}, {"--model-name", "llama"}} {
		out, errOut := said(t, strings.NewReader(""), append([]string{"ask", "--json", "--url", server.URL, "hi"}, args...)...)
		var s chat.Stats
		if err := json.Unmarshal([]byte(out), &s); err != nil || s.Model != "llama" {
			t.Errorf("%q asks for %q, %v", args, s.Model, err)
		}
		if former := strings.Contains(errOut, "is called --model now"); former != (args[0] == "--model-name") {
			t.Errorf("%q: it said %q", args, errOut)
		}
	}
}
