package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// programFolder has the shapes of the requests that programs of npm's packages send: their fields, kinds of values and words
// of the API, without what they say.
const programFolder = "testdata/programs"

// shaped is a request without what it says.
type shaped struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    any               `json:"body,omitempty"`
}

// shaper makes shapes of requests. nil makes none.
type shaper struct {
	tool string            // that is called: it stays, of others one of each shape
	ids  map[string]string // by what stands in their places
	list []shaped
}

func newShaper(tool string) *shaper { return &shaper{tool: tool, ids: map[string]string{}} }

// spoken are headers that belong to an API.
var spoken = []string{"Anthropic-Version", "Anthropic-Beta", "X-App", "Openai-Beta", "Originator", "Accept", "Content-Type"}

// add takes in a request. Of equal shapes one is kept.
func (s *shaper) add(r *http.Request, body []byte) {
	if s == nil {
		return
	}
	one := shaped{Method: r.Method, Path: r.URL.RequestURI(), Headers: map[string]string{}}
	for _, name := range spoken {
		if v := r.Header.Get(name); v != "" {
			one.Headers[name] = v
		}
	}
	if len(body) > 0 {
		var v any
		if json.Unmarshal(body, &v) != nil {
			v = "no JSON"
		}
		one.Body = s.of("", v)
	}
	for _, known := range s.list {
		if fmt.Sprint(known) == fmt.Sprint(one) {
			return
		}
	}
	s.list = append(s.list, one)
}

var (
	// spelled are the fields whose texts are the API's and not the program's.
	spelled = regexp.MustCompile(`^(type|role|model|name|namespace|effort|summary|verbosity|format|syntax|ttl|keep|display|truncation|service_tier|tool_choice|mode|status|finish_reason|reasoning_effort|include|phase|required|execution)$`)
	// plain are such texts.
	plain      = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,48}$`)
	identifies = regexp.MustCompile(`(^|_)id$`)
)

// of returns the shape of a value of a field.
func (s *shaper) of(field string, v any) any {
	switch v := v.(type) {
	case string:
		switch {
		case field == "arguments" || spelled.MatchString(field) && plain.MatchString(v):
			return v
		case identifies.MatchString(field):
			if s.ids[v] == "" {
				s.ids[v] = fmt.Sprintf("id_%d", len(s.ids)+1)
			}
			return s.ids[v]
		case v == "":
			return v
		}
		return "Text."
	case []any:
		out := []any{}
		seen := map[string]bool{}
		for _, item := range v {
			within := field
			if field == "input" { // of a response: a call's is an object
				within = ""
			}
			one := s.of(within, item)
			if field == "tools" && !s.called(one) {
				if kind := kindOf(one); seen[kind] {
					continue
				} else {
					seen[kind] = true
				}
			}
			out = append(out, one)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inner := name
			switch {
			case field == "metadata" || field == "client_metadata":
				inner = "" // texts of its own
			case field == "parameters" || field == "input_schema":
				if name != "type" && name != "required" {
					out[name] = bare(v[name])
					continue
				}
			case field == "input": // of a call
				out[name] = v[name]
				continue
			}
			out[name] = s.of(inner, v[name])
		}
		return out
	}
	return v
}

// called tells whether a tool is the one that is called.
func (s *shaper) called(tool any) bool {
	text, _ := json.Marshal(tool)
	return strings.Contains(string(text), `"name":"`+s.tool+`"`)
}

// bare returns a part of a schema without descriptions.
func bare(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, x := range v {
			if _, text := x.(string); !text || name != "description" && name != "title" {
				out[name] = bare(x)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = bare(v[i])
		}
		return out
	}
	return v
}

// kindOf returns the fields of a tool: two of one kind say nothing that one does not.
func kindOf(tool any) string {
	m, _ := tool.(map[string]any)
	kind := fmt.Sprint(m["type"], slices.Sorted(maps.Keys(m)))
	if f, ok := m["function"].(map[string]any); ok {
		kind += fmt.Sprint(slices.Sorted(maps.Keys(f)))
	}
	for _, name := range []string{"input_schema", "parameters"} {
		if f, ok := m[name].(map[string]any); ok {
			kind += fmt.Sprint(slices.Sorted(maps.Keys(f)))
		}
	}
	return kind
}

// write keeps the shapes.
func (s *shaper) write(t *testing.T, name string) {
	t.Helper()
	text, err := json.MarshalIndent(s.list, "", " ")
	if err == nil {
		err = os.MkdirAll(programFolder, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(programFolder, name+".json"), append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestEveryShapeOfWhatProgramsSendIsAnswered sends what the programs were seen to send, with our own words in it, to a server
// that refuses fields which it does not know.
func TestEveryShapeOfWhatProgramsSendIsAnswered(t *testing.T) {
	for _, p := range programs {
		file, err := os.ReadFile(filepath.Join(programFolder, p.name+".json"))
		if err != nil {
			t.Error(err)
			continue
		}
		list := strictless[[]shaped](t, file)
		m := agent(t, toolcall.Hermes.Write(p.tool, p.arguments), "All is well.")
		m.Context = 1 << 17
		f := start(t, m, func(o *Options) { o.Strict = true })
		f.withTemplate(template.ChatML)
		said := ""
		for _, one := range list {
			var headers []string
			for name, v := range one.Headers {
				headers = append(headers, name, v)
			}
			body, _ := json.Marshal(one.Body)
			if one.Body == nil {
				body = nil
			}
			status, _, answer := f.do(one.Method, one.Path, strings.NewReader(string(body)), headers...)
			if said += string(answer); status != http.StatusOK {
				t.Errorf("%s: %s %s: %d %s", p.name, one.Method, one.Path, status, answer)
			}
		}
		var text strings.Builder
		for _, piece := range regexp.MustCompile(`"(?:content|text)":"([^"]*)"`).FindAllStringSubmatch(said, -1) {
			text.WriteString(piece[1])
		}
		if !strings.Contains(said, p.tool) || !strings.Contains(text.String(), "All is well.") {
			t.Errorf("%s: the answers to %d requests lack a call of %s or the text behind it: %s", p.name, len(list), p.tool, said)
		}
	}
}
