package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/internal/apiclient"
	"github.com/lutra-lm/lutra/internal/chat"
	"github.com/lutra-lm/lutra/internal/sweep"
)

func TestTheLocalModelOfAChatCanChange(t *testing.T) {
	var out bytes.Buffer
	root := Command(&out, &out)
	root.SetIn(strings.NewReader("/model\nWhat is 12 * 7?\n/model lutra-tiny-s\nWhat is 12 * 7?\n/scaling bon4\nWhat is 12 * 7?\n/model nowhere.gguf\n/model\n"))
	root.SetArgs([]string{"chat"})
	err := root.ExecuteContext(t.Context())
	got := out.String()
	if err == nil || strings.Count(got, "12*7=84.\nAnswer: 84\n") != 3 || !strings.Contains(got, "model: lutra-tiny-l, of lutra-tiny-l, lutra-tiny-s, lutra-tiny-moe\n") ||
		!strings.Contains(got, "(lutra-tiny-s: a small demonstration") || !strings.Contains(got, "there is no file nowhere.gguf") ||
		!strings.Contains(got, "model: lutra-tiny-s, of") {
		t.Errorf("%s%v", got, err)
	}
}

// api is a server of models. Its chats stream text; a question that ends in "for ever"
// then waits for the client to leave.
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

func TestDroppedMessagesAndBrokenAnswersOfAServerAreReported(t *testing.T) {
	a, err := chat.NewRemote(t.Context(), &chat.Options{URL: api(t, "lutra", "m").URL, Model: apiclient.DefaultModel})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	emit := func(p chat.Piece) error { text.WriteString(p.Text); return nil }
	long := []chat.Message{{Role: chat.RoleUser, Content: "one"}, {Role: chat.RoleAssistant, Content: "two"}, {Role: chat.RoleUser, Content: "three"}}
	if done, err := a.Answer(t.Context(), &chat.Options{}, long, emit); err != nil || !reflect.DeepEqual(done, chat.Answered{Model: "m", Dropped: 2, Finish: "length"}) {
		t.Errorf("a long conversation: %+v, %v", done, err)
	}
	_, err = a.Answer(t.Context(), &chat.Options{}, []chat.Message{{Role: chat.RoleUser, Content: "break off"}}, emit)
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
	a, err := chat.NewRemote(t.Context(), &chat.Options{URL: ours.URL, Model: apiclient.DefaultModel})
	if err != nil {
		t.Fatal(err)
	}
	if name, words := a.About(); name != "lutra-tiny-l" || words != "at "+ours.URL+"/v1" {
		t.Errorf("about = %q, %q", name, words)
	}
	if err := a.Use(t.Context(), "lutra-tiny-x"); err == nil || !strings.Contains(err.Error(), "did you mean lutra-tiny-l?") {
		t.Errorf("a model it has not: error %v", err)
	}
	for _, c := range []struct{ line, want string }{
		{"ask --url " + other.URL + " --scaling bon8 hi", "is not a lutra server"},
		{"ask --url localhost:1 hi", "no server answers at http://localhost:1/v1: "},
		{"ask --url http://127.0.0.1:1 hi", "no server answers at http://127.0.0.1:1/v1: "},
		{"ask --api-key k hi", "--api-key is for --url"},
		{"ask --model-name m hi", "--model-name is for --url"},
		{"ask --url http://h --model m --model n hi", "--model: one of the server's models answers, got 2"},
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
	if _, got := complain(t, "ask", "--url", locked.URL, "hi"); !strings.Contains(got, "requires an API key, or a different one: LUTRA_API_KEY or --api-key KEY") {
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
	root := Command(&out, os.Stderr)
	root.SetIn(strings.NewReader("What is 12 * 7?\n"))
	root.SetArgs([]string{"ask", "-"})
	if err := root.ExecuteContext(t.Context()); err != nil || out.String() != "12*7=84.\nAnswer: 84\n" {
		t.Errorf("ask - = %q, %v", out.String(), err)
	}
}

func TestALongConversationWithAModelHereLosesItsBeginning(t *testing.T) {
	sweep.Full(t)
	const questions = 60 // of 17 tokens and as much of an answer: twice the context
	var out, errOut bytes.Buffer
	root := Command(&out, &errOut)
	root.SetIn(strings.NewReader(strings.Repeat("What is 12 * 7?\n", questions)))
	root.SetArgs([]string{"chat", "--model", "lutra-tiny-s", "--max-tokens", "16"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, &errOut)
	}
	if n := strings.Count(errOut.String(), "the model reads only the end"); n != 1 {
		t.Errorf("it was said %d times that the beginning is forgotten: %s", n, &errOut)
	}
}
