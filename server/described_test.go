package server

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/openapi"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// requestsFile has the fields that readers ask for.
const requestsFile = "openapi/requests.json"

// heard gathers what readers ask of bodies. Several servers' requests may be heard at once.
type heard struct {
	mu     sync.Mutex
	shapes map[string]map[string][]jsonread.Shape // by the route's path and the field's
}

// listen has h hear all requests of a server.
func (h *heard) listen(f *fixture) {
	f.admitter.noted = func(path string) jsonread.Note {
		return func(name string, s jsonread.Shape) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.shapes == nil {
				h.shapes = map[string]map[string][]jsonread.Shape{}
			}
			if h.shapes[path] == nil {
				h.shapes[path] = map[string][]jsonread.Shape{}
			}
			name = indexes.ReplaceAllString(name, "[]")
			h.shapes[path][name] = append(h.shapes[path][name], s)
		}
	}
}

var indexes = regexp.MustCompile(`\[[0-9]+\]`)

// requests sums up what was heard.
func (h *heard) requests() openapi.Requests {
	all := openapi.Requests{}
	for path, byName := range h.shapes {
		all[path] = map[string]openapi.Field{}
		for name, shapes := range byName {
			all[path][name] = summed(shapes)
		}
	}
	return all
}

// summed joins the shapes of one field, which several readers may have asked for.
func summed(shapes []jsonread.Shape) (f openapi.Field) {
	types := map[string]bool{}
	for _, s := range shapes {
		if s.Type == "" {
			return openapi.Field{} // whatever the reader makes of it
		}
		types[s.Type] = true
		if s.Items != "" {
			f.Items = s.Items
		}
		for _, w := range s.Words {
			if !slices.Contains(f.Enum, w) {
				f.Enum = append(f.Enum, w)
			}
		}
		if s.Least != nil && (f.Least == nil || *s.Least < *f.Least) {
			f.Least = s.Least
		}
		if s.Most != nil && (f.Most == nil || *s.Most > *f.Most) {
			f.Most = s.Most
		}
	}
	if types["number"] {
		delete(types, "integer")
	}
	f.Type = slices.Sorted(maps.Keys(types))
	if len(f.Type) > 1 {
		f.Enum = nil
	}
	return f
}

// compare holds requestsFile to what was heard. With -update it writes the file.
func (h *heard) compare(t *testing.T) {
	t.Helper()
	now, err := json.MarshalIndent(h.requests(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	now = append(now, '\n')
	if *updateBytes {
		if err := os.WriteFile(requestsFile, now, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, err := os.ReadFile(requestsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(now) != string(was) {
		t.Errorf("%s is not what readers ask for: LUTRA_TESTS=all go test ./server -run TestEveryAnswerHasTheBytes -update", requestsFile)
	}
}

// described has the parts of the description that a test reads.
type described struct {
	OpenAPI string
	Paths   map[string]map[string]struct {
		OperationID string
		RequestBody *struct {
			Content map[string]struct{ Schema describedField }
		}
		Parameters []struct{ Name string }
	}
}

type describedField struct {
	Type        any
	Description string
	Properties  map[string]describedField
	Items       *describedField
	Minimum     *float64
	Maximum     *float64
}

// at finds a field by its path.
func (d *describedField) at(path string) *describedField {
	for part := range strings.SplitSeq(path, ".") {
		name, lists := strings.CutSuffix(part, "[]")
		f, ok := d.Properties[name]
		if !ok {
			return nil
		}
		if d = &f; lists {
			d = f.Items
		}
	}
	return d
}

func TestTheDescriptionHasEveryRouteAndField(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	_, h, answer := f.do("GET", "/openapi.json", nil)
	if h.Get("Content-Type") != "application/json" {
		t.Errorf("it is said to be %q", h.Get("Content-Type"))
	}
	d := strictless[described](t, answer)
	ids := map[string]bool{}
	for at, routes := range f.router.routes {
		path := strings.Replace(at.path, "*", "{name}", 1)
		op, found := d.Paths[path][strings.ToLower(at.method)]
		if !found || ids[op.OperationID] {
			t.Errorf("%s %s has the operation %+v", at.method, path, op)
			continue
		}
		if ids[op.OperationID] = true; strings.Count(path, "{") != len(op.Parameters) {
			t.Errorf("%s has the parameters %+v", path, op.Parameters)
		}
		if (op.RequestBody != nil) != (routes[0].Factor > 0) {
			t.Errorf("%s %s has a body: %t", at.method, path, op.RequestBody != nil)
		}
	}
	for path, names := range openapi.Recorded() {
		op := d.Paths[strings.Replace(path, "*", "{name}", 1)]["post"]
		if op.RequestBody == nil {
			t.Errorf("%s reads no body", path)
			continue
		}
		schema := op.RequestBody.Content["application/json"].Schema
		for name := range names {
			if schema.at(name) == nil {
				t.Errorf("%s lacks %s", path, name)
			}
		}
	}
	chat := d.Paths["/v1/chat/completions"]["post"].RequestBody.Content["application/json"].Schema
	for i := range sampling.Fields {
		row := &sampling.Fields[i]
		if got := chat.at(row.Name); got == nil || got.Description != row.Doc || got.Maximum == nil || *got.Maximum != row.Hi {
			t.Errorf("a chat's %s: %+v", row.Name, got)
		}
	}
	for _, row := range fields.Sampled {
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row.Names, -1) {
			if chat.at(name[1]) == nil {
				t.Errorf("a chat lacks %s", name[1])
			}
		}
	}
	for i := range scaling.Settings {
		if name := "test_time_scaling." + scaling.Settings[i].Key; chat.at(name) == nil {
			t.Errorf("a chat lacks %s", name)
		}
	}
	for _, name := range []string{"messages[].role", "messages[].tool_calls", "tools[].function.name", "stream_options.include_usage", "cache_salt", "priority", "return_token_ids", "prompt_logprobs"} {
		if chat.at(name) == nil {
			t.Errorf("a chat lacks %s", name)
		}
	}
	if chat.at("audio") != nil {
		t.Error("a chat has a field that is refused")
	}
}
