package hub

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/hub/hubtest"
)

// endpointOnly answers requests to the endpoint in place of the hub.
func (b *bench) endpointOnly(answer func(w http.ResponseWriter, r *http.Request) bool) {
	b.server.Before = func(w http.ResponseWriter, r *http.Request) bool { return !isCDN(b.server, r) && answer(w, r) }
}

func TestWhatTheHubRefusesIsSaidInWords(t *testing.T) {
	for _, c := range []struct {
		what   string
		token  string
		status int
		code   string
		says   []string
	}{
		{"a gated repository", "", 401, "GatedRepo", []string{"gated", "HF_TOKEN", "/acme/Tiny-GGUF"}},
		{"a gated repository and a token without access", "hf_x", 403, "GatedRepo", []string{"gated", "accept its conditions"}},
		{"forbidden", "", 403, "", []string{"gated"}},
		{"no repository, as strangers hear it", "", 401, "RepoNotFound", []string{"no public repository acme/Tiny-GGUF", "HF_TOKEN"}},
		{"a bad token", "hf_x", 401, "", []string{"does not accept the token"}},
		{"no repository", "", 404, "RepoNotFound", []string{"no repository acme/Tiny-GGUF"}},
		{"no file", "", 404, "EntryNotFound", []string{"Tiny-Q4_K_M.gguf is not there"}},
		{"a server of something else", "", 418, "", []string{"418"}},
	} {
		for _, at := range []string{"/api/", "/resolve/"} {
			b := newBench(t)
			b.Hub = b.open(t, Options{Cache: t.TempDir(), Token: c.token})
			b.endpointOnly(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, at) {
					return false
				}
				if c.code != "" {
					w.Header().Set("X-Error-Code", c.code)
				}
				w.WriteHeader(c.status)
				return true
			})
			_, err := b.Pull(t.Context(), tiny, nil)
			if err == nil || len(b.waited) > 0 {
				t.Errorf("%s at %s: %v after waiting %v", c.what, at, err, b.waited)
				continue
			}
			for _, words := range c.says {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%s at %s: %q does not say %q", c.what, at, err, words)
				}
			}
			if strings.Contains(err.Error(), "hf_x") {
				t.Errorf("%s: the error has the token: %v", c.what, err)
			}
		}
	}
}

func TestAHubThatIsBusyIsAskedAgainWhenItSays(t *testing.T) {
	b := newBench(t)
	n := 0
	b.endpointOnly(func(w http.ResponseWriter, _ *http.Request) bool {
		if n++; n > 3 {
			return false
		}
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	b.pulled(t)
	if want := []time.Duration{7 * time.Second, 7 * time.Second, 7 * time.Second}; !slices.Equal(b.waited, want) {
		t.Errorf("it waits %v, want %v", b.waited, want)
	}
	b.waited = nil
	b.endpointOnly(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	if _, err := b.Pull(t.Context(), tiny, nil); err == nil || !strings.Contains(err.Error(), "24h") || len(b.waited) > 0 {
		t.Errorf("asked to wait a day: %v after %v", err, b.waited)
	}
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"30": 30 * time.Second, "0": 0, "Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second, "Fri, 02 Jan 2026 03:00:00 GMT": 0,
	} {
		if got, ok := retryAfter(v, now); !ok || got != want {
			t.Errorf("retryAfter(%q) = %v, %v", v, got, ok)
		}
	}
	for _, v := range []string{"", "-1", "soon", "99999999999999999999", "1.5"} {
		if got, ok := retryAfter(v, now); ok {
			t.Errorf("retryAfter(%q) = %v", v, got)
		}
	}
}

// Lists that a hub could send, and what must not come of them.
func TestHostileListsAreRefused(t *testing.T) {
	const commit = `"sha":"0123456789012345678901234567890123456789"`
	for what, text := range map[string]string{
		"no JSON":                   "<html>",
		"another type":              `{"sha": 5}`,
		"no commit":                 `{"siblings":[{"rfilename":"a.gguf"}]}`,
		"a commit that is a path":   `{"sha":"../../../../../../../../../../../../../etc","siblings":[{"rfilename":"a.gguf"}]}`,
		"a name that leaves":        `{` + commit + `,"siblings":[{"rfilename":"../../../a.gguf"}]}`,
		"a name that leaves later":  `{` + commit + `,"siblings":[{"rfilename":"a/../../b.gguf"}]}`,
		"an absolute name":          `{` + commit + `,"siblings":[{"rfilename":"/etc/a.gguf"}]}`,
		"a drive":                   `{` + commit + `,"siblings":[{"rfilename":"C:a.gguf"}]}`,
		"a backslash":               `{` + commit + `,"siblings":[{"rfilename":"..\\..\\a.gguf"}]}`,
		"a NUL":                     `{` + commit + `,"siblings":[{"rfilename":"a\u0000.gguf"}]}`,
		"an escape sequence":        `{` + commit + `,"siblings":[{"rfilename":"\u001b[2J.gguf"}]}`,
		"a very long name":          `{` + commit + `,"siblings":[{"rfilename":"` + strings.Repeat("a/", 600) + `a.gguf"}]}`,
		"more than can be read":     `{"siblings":"` + strings.Repeat("x", maxListing) + `"}`,
		"more files than there are": `{` + commit + `,"siblings":[` + strings.Repeat(`{},`, maxFiles) + `{}]}`,
		"no model":                  `{` + commit + `,"siblings":[{"rfilename":"README.md"}]}`,
		"only a projector":          `{` + commit + `,"siblings":[{"rfilename":"mmproj-F16.gguf"}]}`,
	} {
		b := newBench(t)
		b.endpointOnly(func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, text)
			return true
		})
		path, err := b.Pull(t.Context(), Ref{Owner: "acme", Repo: "Tiny-GGUF"}, nil)
		if err == nil || len(err.Error()) > 2000 || strings.ContainsAny(err.Error(), "\x00\x1b") {
			t.Errorf("%s: Pull = %q, %v", what, path, err)
		}
		if left, _ := os.ReadDir(b.Cache()); len(left) > 0 {
			t.Errorf("%s leaves %v", what, left)
		}
	}
}

func TestHostileHeadersAreRefused(t *testing.T) {
	sha := strings.Repeat("0", 64)
	for what, header := range map[string]map[string]string{
		"an ETag that is a path":     {"X-Linked-Etag": `"../../../../x"`, "X-Linked-Size": "5"},
		"an ETag with a backslash":   {"X-Linked-Etag": `"a\b"`, "X-Linked-Size": "5"},
		"a long ETag":                {"X-Linked-Etag": `"` + strings.Repeat("a", 300) + `"`, "X-Linked-Size": "5"},
		"no ETag":                    {"X-Linked-Size": "5"},
		"no size":                    {"X-Linked-Etag": sha},
		"a negative size":            {"X-Linked-Etag": sha, "X-Linked-Size": "-5"},
		"a size that is no number":   {"X-Linked-Etag": sha, "X-Linked-Size": "5e9"},
		"a size beyond all disks":    {"X-Linked-Etag": sha, "X-Linked-Size": "9223372036854775807"},
		"another size than the list": {"X-Linked-Etag": sha, "X-Linked-Size": "5"},
		"another commit":             {"X-Linked-Etag": sha, "X-Linked-Size": "10500", "X-Repo-Commit": sha[:40]},
		"a header without end":       {"X-Linked-Etag": strings.Repeat("a", 2*maxHeader)},
		"a file on this machine":     {"Location": "file:///etc/passwd"},
		"another protocol":           {"Location": "ftp://example.com/x"},
		"a redirect to nowhere":      {"Location": ""},
	} {
		b := newBench(t)
		b.endpointOnly(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodHead {
				return false
			}
			w.Header().Set("Location", b.server.CDN+"/x")
			for key, v := range header {
				w.Header().Set(key, v)
			}
			w.WriteHeader(http.StatusFound)
			return true
		})
		path, err := b.Pull(t.Context(), tiny, nil)
		if err == nil || len(err.Error()) > 2000 {
			t.Errorf("%s: Pull = %q, %v", what, path, err)
		}
		if left, _ := os.ReadDir(filepath.Join(b.Cache(), "models--acme--Tiny-GGUF", "blobs")); len(left) > 0 {
			t.Errorf("%s leaves %v", what, left)
		}
	}
}

func TestHostileContentsAreRefused(t *testing.T) {
	for what, answer := range map[string]http.HandlerFunc{
		"another size": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Range", strings.Replace(r.Header.Get("Range"), "=", " ", 1)+"/99999")
			w.WriteHeader(http.StatusPartialContent)
		},
		"another range": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 1-999/10500")
			w.WriteHeader(http.StatusPartialContent)
		},
		"a range that is no range": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes */*")
			w.WriteHeader(http.StatusPartialContent)
		},
		"compressed": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Range", strings.Replace(r.Header.Get("Range"), "=", " ", 1)+"/10500")
			w.WriteHeader(http.StatusPartialContent)
		},
		"a whole file of another size": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 20_000))
		},
		"a whole file that says no size and is longer": func(w http.ResponseWriter, _ *http.Request) {
			for range 30 {
				_, _ = w.Write(make([]byte, 1000))
				_ = http.NewResponseController(w).Flush()
			}
		},
		"a redirect in a circle": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
		"nothing":                func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	} {
		b := newBench(t)
		b.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
			if isCDN(b.server, r) {
				answer(w, r)
				return true
			}
			return false
		}
		if path, err := b.Pull(t.Context(), tiny, nil); err == nil {
			t.Errorf("%s: Pull = %q", what, path)
		}
		if _, err := b.Find(tiny); !errors.Is(err, ErrAbsent) {
			t.Errorf("%s: Find = %v", what, err)
		}
	}
}

func TestARepositoryThatHasMovedIsFollowed(t *testing.T) {
	b := newBench(t)
	old := Ref{Owner: "acme", Repo: "Small-GGUF", File: tiny.File}
	b.endpointOnly(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "Small-GGUF") {
			return false
		}
		http.Redirect(w, r, strings.Replace(r.URL.RequestURI(), "Small-GGUF", "Tiny-GGUF", 1), http.StatusTemporaryRedirect)
		return true
	})
	path, err := b.Pull(t.Context(), old, nil)
	if err != nil || !strings.Contains(path, "models--acme--Small-GGUF") {
		t.Errorf("Pull = %q, %v", path, err)
	}
}

func TestRedirectsKeepToTheProtocol(t *testing.T) {
	c, err := newClient(Options{Endpoint: defaultEndpoint})
	if err != nil {
		t.Fatal(err)
	}
	for location, good := range map[string]bool{
		"https://cdn.example/x": true, "/elsewhere": true, "https://user:secret@cdn.example/x": true,
		"http://cdn.example/x": false, "file:///x": false, "javascript:x": false, "": false,
	} {
		from, _ := url.Parse(defaultEndpoint + "/a")
		resp := &http.Response{Header: http.Header{"Location": {location}}, Request: &http.Request{URL: from}}
		if location == "" {
			resp.Header = http.Header{}
		}
		to, err := c.redirect(from, resp)
		if (err == nil) != good || good && to.User != nil {
			t.Errorf("redirect to %q = %v, %v", location, to, err)
		}
	}
}

// A hub's answers of any kind are an error or a file of its own name in the cache.
func FuzzHubAnswers(f *testing.F) {
	f.Add(`{"sha":"0123456789012345678901234567890123456789","siblings":[{"rfilename":"a-Q4_K_M.gguf"}]}`, "etag", "4", "abcd")
	f.Add(`{"sha":"0123456789012345678901234567890123456789","siblings":[{"rfilename":"../a.gguf"}]}`, `W/"../x"`, "-1", "")
	server := hubtest.New(f)
	var list, etag, size, body string
	server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case isCDN(server, r):
			_, _ = io.WriteString(w, body)
		case strings.HasPrefix(r.URL.Path, "/api/"):
			_, _ = io.WriteString(w, list)
		default:
			w.Header()["X-Linked-Etag"] = []string{strings.NewReplacer("\n", "", "\r", "").Replace(etag)}
			w.Header()["X-Linked-Size"] = []string{strings.NewReplacer("\n", "", "\r", "").Replace(size)}
			http.Redirect(w, r, server.CDN+"/x", http.StatusFound)
		}
		return true
	}
	f.Fuzz(func(t *testing.T, l, e, s, c string) {
		list, etag, size, body = l, e, s, c
		dir := t.TempDir()
		cache := filepath.Join(dir, "cache")
		b := &bench{server: server}
		h := b.open(t, Options{Cache: cache})
		h.free = func(string) (int64, error) { return 1 << 20, nil }
		defer h.c.http.CloseIdleConnections()
		path, err := h.Pull(t.Context(), Ref{Owner: "acme", Repo: "Tiny-GGUF"}, nil)
		if err == nil && !strings.HasPrefix(path, filepath.Join(cache, "models--acme--Tiny-GGUF", "snapshots")+string(filepath.Separator)) {
			t.Errorf("the file is at %q", path)
		}
		outside, err := os.ReadDir(dir)
		if err != nil || len(outside) > 1 {
			t.Errorf("beside the cache there is %v, %v", outside, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"hf:a/b", "hf:a/b:Q4_K_M", "hf:a/b:c/d.gguf", "hf:../b:..\\x.gguf", "hf:a/b:", "hf:a/b:0..gguf"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r, err := Parse(name)
		if err != nil {
			return
		}
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Errorf("Parse(%q) = %+v, Parse(%q) = %+v, %v", name, r, r, again, err)
		}
		h := Hub{o: Options{Cache: "/cache"}}
		d := h.folder(r)
		if p := filepath.ToSlash(d.pointer("c", r.File)); !strings.HasPrefix(p, "/cache/models--"+r.Owner+"--"+r.Repo+"/snapshots/c") {
			t.Errorf("%q is kept at %q", name, p)
		}
	})
}
