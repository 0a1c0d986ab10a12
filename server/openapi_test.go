package server

import (
	"bytes"
	"maps"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// With LUTRA_OPENAPI, the path of OpenAI's API as JSON, every answer and every event of
// every test of this package is held against its schema there.

// openAPI is OpenAI's description of its API.
type openAPI struct {
	compiler *jsonschema.Compiler
	mu       sync.Mutex
	schemas  map[string]*jsonschema.Schema
	valid    map[string]int // documents, by schema
}

// theOpenAPI is nil where LUTRA_OPENAPI does not name one.
var theOpenAPI = sync.OnceValues(func() (*openAPI, error) {
	path := os.Getenv("LUTRA_OPENAPI")
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	doc, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		return nil, err
	}
	a := &openAPI{compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}, valid: map[string]int{}}
	return a, a.compiler.AddResource("openapi.json", current(doc))
})

// current rewrites keywords of former versions of OpenAPI and of JSON Schema into today's: nullable
// values, recursion, and alternatives that a field tells apart, of which several may hold.
func current(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			v[name] = current(inner)
		}
		if list, ok := v["oneOf"]; ok && v["discriminator"] != nil {
			v["anyOf"] = list
			delete(v, "oneOf")
		}
		if delete(v, "$recursiveAnchor"); v["$recursiveRef"] != nil {
			return true
		}
		if v["nullable"] == true {
			return map[string]any{"anyOf": []any{v, map[string]any{"type": "null"}}}
		}
	case []any:
		for i, inner := range v {
			v[i] = current(inner)
		}
	}
	return v
}

// answersOf are the schemas of whole answers and of streams' chunks.
var answersOf = []struct {
	request      *regexp.Regexp
	whole, chunk string
}{
	{regexp.MustCompile(`^POST /v1/chat/completions$`), "CreateChatCompletionResponse", "CreateChatCompletionStreamResponse"},
	{regexp.MustCompile(`^POST /v1/completions$`), "CreateCompletionResponse", ""}, // it has no schema for chunks
	{regexp.MustCompile(`^POST /v1/embeddings$`), "CreateEmbeddingResponse", ""},
	{regexp.MustCompile(`^POST /v1/responses/input_tokens$`), "TokenCountsResource", ""},
	{regexp.MustCompile(`^POST /v1/responses/compact$`), "CompactResource", ""},
	{regexp.MustCompile(`^GET /v1/responses/[^/]+/input_items$`), "ResponseItemList", ""},
	{regexp.MustCompile(`^(POST /v1/responses(/[^/]+/cancel)?|GET /v1/responses/[^/]+)$`), "Response", "ResponseStreamEvent"},
}

// validated returns a handler whose answers are held against OpenAI's schemas.
func validated(t testing.TB, h http.Handler) http.Handler {
	api, err := theOpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	if api == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer bytes.Buffer
		ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		ww.Tee(&answer)
		h.ServeHTTP(ww, r)
		if ww.Status() == http.StatusOK && r.Context().Err() == nil && r.Header.Get("Anthropic-Version") == "" {
			api.check(t, r.Method+" "+r.URL.Path, w.Header().Get("Content-Type"), answer.Bytes())
		}
	})
}

// check holds an answer to a request against its schema, or all events of a stream.
func (a *openAPI) check(t testing.TB, request, kind string, answer []byte) {
	for _, of := range answersOf {
		if !of.request.MatchString(request) {
			continue
		}
		switch {
		case !strings.HasPrefix(kind, "text/event-stream"):
			a.document(t, of.whole, answer)
			return
		case of.chunk == "":
			return
		}
		for e := range strings.SplitSeq(strings.TrimSuffix(string(answer), "\n\n"), "\n\n") {
			if _, data, ok := strings.Cut(e, "data: "); ok && data != "[DONE]" && !strings.HasPrefix(data, `{"error"`) {
				a.document(t, of.chunk, []byte(data))
			}
		}
		return
	}
}

// document holds one document against a schema.
func (a *openAPI) document(t testing.TB, name string, text []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	schema := a.schemas[name]
	if schema == nil {
		var err error
		if schema, err = a.compiler.Compile("openapi.json#/components/schemas/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		a.schemas[name] = schema
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Errorf("%s: %.600s: %v", name, text, err)
		return
	}
	if name == "CreateCompletionResponse" {
		dropUnpredicted(v)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("%s: %.1200s\n%.1500v", name, text, err)
		return
	}
	a.valid[name]++
}

// dropUnpredicted takes out the null that the first token of an echoed prompt has for its
// log-probability: OpenAI's API answers so, which its description does not say.
func dropUnpredicted(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if list, ok := inner.([]any); ok && (name == "token_logprobs" || name == "top_logprobs") && len(list) > 0 && list[0] == nil {
				v[name] = list[1:]
			}
			dropUnpredicted(inner)
		}
	case []any:
		for _, inner := range v {
			dropUnpredicted(inner)
		}
	}
}

func TestResponsesMeetOpenAIsSchema(t *testing.T) {
	api, err := theOpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	if api == nil {
		t.Skip("LUTRA_OPENAPI does not name OpenAI's API as JSON")
	}
	before := maps.Clone(api.valid)
	f := start(t, says(t, thoughtful+toolcall.Hermes.Write("note", `{"input": "x"}`)+toolcall.Hermes.Write("get_weather", inBerlin)), nil)
	f.withTemplate(template.ChatML)
	tools := `"tools":[{"type":"custom","name":"note","format":{"type":"grammar","syntax":"regex","definition":"[a-z]"}},` + flatWeather[1:]
	for _, fields := range []string{
		tools, tools + `,"max_output_tokens":20`, tools + `,"tool_choice":"required","parallel_tool_calls":false,"reasoning":{"effort":"low"},"user":"me","metadata":{"a":"b"}`,
		tools + `,"include":["message.output_text.logprobs","reasoning.encrypted_content"],"top_logprobs":3,"max_tool_calls":2,"truncation":"auto","instructions":"Be brief."`,
		`"text":{"format":{"type":"json_schema","name":"x","schema":{"type":"object"},"strict":true},"verbosity":"low"}`, `"text":{"format":{"type":"json_object"}},"store":false`,
	} {
		r := created[answered](f, `"input":"Hi",`+fields)
		streamed := responseStream(t, f.sent("/v1/responses", `{"input":"Hi","stream":true,`+fields+`}`))
		f.do("GET", "/v1/responses/"+streamed.ID+"?stream=true", nil)
		f.do("GET", "/v1/responses/"+r.ID, nil)
		f.do("GET", "/v1/responses/"+r.ID+"/input_items", nil)
		f.sent("/v1/responses/input_tokens", `{"input":"Hi","instructions":"Be brief."}`)
		f.sent("/v1/responses/compact", `{"model":"toy","input":"Hi"}`)
	}
	for _, of := range answersOf {
		if strings.Contains(of.request.String(), "responses") && api.valid[of.whole] == before[of.whole] {
			t.Errorf("no %s was seen", of.whole)
		}
	}
	if api.valid["ResponseStreamEvent"] == before["ResponseStreamEvent"] {
		t.Error("no event was seen")
	}
}
