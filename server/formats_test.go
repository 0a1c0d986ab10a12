package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts/structure"
)

// withGrammar returns the field of a grammar, in JSON.
func withGrammar(text string) string {
	quoted, _ := json.Marshal(text)
	return `,"max_tokens":20,"grammar":` + string(quoted)
}

// unused waits until no request uses a format, and is what the cache has done then.
func unused(c *structure.Cache) structure.CacheStats {
	for c.Stats().Used > 0 {
		runtime.Gosched()
	}
	return c.Stats()
}

func TestAGrammarOfManyRulesThatMayBeEmptyIsHeldTo(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	text := "root ::= " + strings.Repeat("x ", 4200) + "\".\"\nx ::= \"a\" | \"\""
	status, _, answer := f.post("/v1/chat/completions", chatBody(withGrammar(text)))
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	texts, _ := contents(t, answer)
	if strings.Trim(texts[0], "a") != "" && strings.Trim(texts[0], "a") != "." {
		t.Errorf("%q is none of its texts", texts[0])
	}
}

func TestAFormatThatMeetsItsBoundIsRefusedWithIt(t *testing.T) {
	sweep.NoRace(t)
	f := start(t, &toy.Model{}, nil)
	cache := structure.NewCache(structure.CacheOptions{Memory: 32 << 20, Largest: 4 << 20})
	f.model.Formats.Share(cache)
	var words, optional strings.Builder
	for i := range 15000 {
		fmt.Fprintf(&words, `"word%d" | `, i)
	}
	for i := range 3000 {
		fmt.Fprintf(&optional, `[^\U%08x]? `, 0x4e00+i)
	}
	for name, c := range map[string]struct{ text, param string }{
		"while it is compiled": {"root ::= x\nx ::= " + words.String() + `"x"`, "grammar"},
		"while it is used":     {"root ::= " + optional.String() + `"."`, ""},
	} {
		status, _, answer := f.post("/v1/chat/completions", chatBody(withGrammar(c.text)))
		wantError(t, name, status, answer, 400, jsonread.CodeValue, c.param)
		if !strings.Contains(string(answer), "it needs more than 4 MiB of memory") {
			t.Errorf("%s: %s does not name the bound", name, answer)
		}
		_, _, answer = f.post("/v1/chat/completions", chatBody(withGrammar(c.text)+`,"stream":true`))
		if !strings.Contains(string(answer), "it needs more than 4 MiB of memory") {
			t.Errorf("%s, in a stream: %s does not name the bound", name, answer)
		}
	}
	if st := unused(cache); st.Bytes != 0 {
		t.Errorf("formats that failed still count: %+v", st)
	}
}

func TestFormatsOfManyRequestsTakeBoundedMemory(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	options := structure.CacheOptions{Memory: 8 << 20, Largest: 4 << 20}
	cache := structure.NewCache(options)
	f.model.Formats.Share(cache)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			body := chatBody(fmt.Sprintf(`,"max_tokens":8,"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object","properties":{"x":{"type":"number","multipleOf":1.23%06d}},"required":["x"]}}}`, 450679+2*i))
			status, _, answer := f.post("/v1/chat/completions", body)
			if status != http.StatusOK && status != http.StatusBadRequest && status != http.StatusTooManyRequests {
				t.Errorf("%d %s", status, answer)
			}
			if st := cache.Stats(); st.Bytes > options.Memory*5/4 { // what is refused counts until it has ended
				t.Errorf("formats take %d bytes", st.Bytes)
			}
		})
	}
	wg.Wait()
	if st := unused(cache); st.Bytes > options.Memory || st.Misses != 32 {
		t.Errorf("%+v", st)
	}
}

func TestRequestsFindNoMemoryForFormatsWhileOthersUseIt(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	f.model.Formats.Share(structure.NewCache(structure.CacheOptions{Memory: 64 << 10, Largest: 1 << 20}))
	status, header, answer := f.post("/v1/chat/completions", chatBody(withGrammar(`root ::= "`+strings.Repeat("a", 5000)+`"`)))
	wantError(t, "no memory", status, answer, http.StatusTooManyRequests, "server_busy", "")
	if header.Get("Retry-After") == "" {
		t.Error("it does not say when to ask again")
	}
}

func TestAFormatIsSharedAndOutOfUseAfterItsRequests(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	cache := structure.NewCache(structure.DefaultCacheOptions())
	f.model.Formats.Share(cache)
	for _, path := range []string{"/v1/chat/completions", "/v1/chat/completions"} {
		if status, _, answer := f.post(path, chatBody(withGrammar(`root ::= "a" root | "b"`))); status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
	}
	if st := unused(cache); st.Hits != 1 || st.Misses != 1 || st.Formats != 1 || st.Bytes == 0 {
		t.Errorf("%+v", st)
	}
}
