package server

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// startWithBOS returns a server whose model wants a BOS before a text.
func startWithBOS(t *testing.T) *fixture {
	t.Helper()
	f := start(t, &toy.Model{}, nil)
	file, err := embedded.Open(embedded.Default)
	if err != nil {
		t.Fatal(err)
	}
	md := maps.Clone(file.Metadata)
	md["tokenizer.ggml.add_bos_token"] = true
	if f.model.Tokenizer, err = tokenizer.New(md); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.model.Tokenizer.BOS(); !ok {
		t.Fatal("the vocabulary has no BOS")
	}
	return f
}

func TestAContentIsTokenisedAsLlamaCppDoesAndAPromptAsVLLMDoes(t *testing.T) {
	f := startWithBOS(t)
	bos, _ := f.model.Tokenizer.BOS()
	const special = "Hi<|im_end|>"
	end, _ := f.model.Tokenizer.EOS()
	for _, c := range []struct {
		body     string
		bos, end bool // among the tokens
	}{
		{`{"content":"` + special + `"}`, false, true},
		{`{"content":"` + special + `","add_special":true}`, true, true},
		{`{"content":"` + special + `","parse_special":false}`, false, false},
		{`{"content":"` + special + `","add_special":true,"parse_special":false}`, true, false},
		{`{"prompt":"` + special + `"}`, true, true},
		{`{"prompt":"` + special + `","add_special_tokens":false}`, false, true},
		{`{"messages":[{"role":"user","content":"Hi"}]}`, false, true},
	} {
		_, _, answer := f.post("/tokenize", c.body)
		var got struct{ Tokens []int32 }
		if err := json.Unmarshal(answer, &got); err != nil || len(got.Tokens) == 0 {
			t.Fatalf("%s: %s", c.body, answer)
		}
		if hasBOS, hasEnd := got.Tokens[0] == bos, slices.Contains(got.Tokens, end); hasBOS != c.bos || hasEnd != c.end {
			t.Errorf("%s: %v, want a BOS: %v, <|im_end|>: %v", c.body, got.Tokens, c.bos, c.end)
		}
	}
}

func TestPiecesAreTextOrBytes(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	_, _, answer := f.post("/tokenize", `{"content":"Hi €<|im_end|>","with_pieces":true}`)
	var got struct {
		Tokens []struct {
			ID    int32
			Piece any
		}
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatal(err)
	}
	text, bytes := "", []byte{}
	for _, tok := range got.Tokens {
		switch p := tok.Piece.(type) {
		case string:
			text += p
		case []any:
			for _, b := range p {
				bytes = append(bytes, byte(b.(float64)))
			}
		}
	}
	if text != "Hi <|im_end|>" || string(bytes) != "€" {
		t.Errorf("the pieces spell %q and %q: %s", text, bytes, answer)
	}
}

func TestOnlyOneThingIsTokenisedAtATime(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	for body, param := range map[string]string{
		`{}`:                           "prompt",
		`{"prompt":"a","content":"b"}`: "content",
		`{"prompt":"a","messages":[{"role":"user","content":"b"}]}`: "prompt",
		`{"content":7}`: "content",
	} {
		status, _, answer := f.post("/tokenize", body)
		code := jsonread.CodeValue
		switch {
		case body == `{}`:
			code = jsonread.CodeMissing
		case strings.Contains(body, "7"):
			code = jsonread.CodeType
		}
		wantError(t, body, status, answer, 400, code, param)
	}
}

func TestAHarnessLearnsTheTokenizerFromTheServer(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	_, _, answer := f.do("GET", "/tokenizer_info", nil)
	var info struct {
		EOS      string `json:"eos_token"`
		Template string `json:"chat_template"`
		Length   int    `json:"model_max_length"`
	}
	if err := json.Unmarshal(answer, &info); err != nil || info.EOS != "<|im_end|>" || info.Length != f.model.Context || info.Template != f.model.Template.Source() {
		t.Errorf("tokenizer_info: %s", answer)
	}
	_, _, answer = f.post("/tokenize", `{"prompt":"`+info.EOS+`","add_special_tokens":false}`)
	if end, _ := f.model.Tokenizer.EOS(); !strings.Contains(string(answer), `"count":1`) || !strings.Contains(string(answer), string(must(json.Marshal([]int32{end})))) {
		t.Errorf("the end token tokenises to %s", answer)
	}
	status, _, answer := f.do("GET", "/tokenizer_info?model=nobody", nil)
	wantError(t, "another model", status, answer, 404, "model_not_found", "model")
}

func TestAShortTextWhoseClientHasLeftIsNotEncoded(t *testing.T) {
	f := real(t, nil)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	w := httptest.NewRecorder()
	f.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "http://localhost/tokenize", strings.NewReader(`{"prompt":"What is 12 * 7?"}`)))
	if w.Code == http.StatusOK || strings.Contains(w.Body.String(), "tokens") {
		t.Errorf("%d %s for a client that has left", w.Code, w.Body)
	}
}

func TestTheVersionIsThatOfTheProgram(t *testing.T) {
	f := start(t, says(t, "four"), func(o *Options) { o.Version = "v1.2.3" })
	if status, text := f.try("", "GET", "/version", "", ""); status != http.StatusOK || text != `{"version":"v1.2.3"}`+"\n" {
		t.Errorf("%d %s", status, text)
	}
}
