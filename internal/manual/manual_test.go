package manual

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"golang.org/x/net/html"
)

var repository = os.DirFS("../..")

var built = sync.OnceValues(func() (*Site, error) { return Build(repository) })

func site(t *testing.T) *Site {
	t.Helper()
	s, err := built()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Paths()) < 60 {
		t.Fatalf("the site has %d files: the test has lost sight of them", len(s.Paths()))
	}
	return s
}

// elements returns the elements of a page with their attributes.
func elements(t *testing.T, page []byte) (list []html.Token) {
	t.Helper()
	for z := html.NewTokenizer(bytes.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			if z.Err() != io.EOF {
				t.Fatal(z.Err())
			}
			return list
		case html.StartTagToken, html.SelfClosingTagToken:
			list = append(list, z.Token())
		}
	}
}

// anchorsOf are the ids of a page's elements, by page.
func anchorsOf(t *testing.T, s *Site) map[string][]string {
	anchors := map[string][]string{}
	for _, name := range s.Paths() {
		if path.Ext(name) != ".html" {
			continue
		}
		for _, e := range elements(t, s.File(name)) {
			for _, a := range e.Attr {
				if a.Key == "id" {
					if slices.Contains(anchors[name], a.Val) {
						t.Errorf("%s has two elements with the id %s", name, a.Val)
					}
					anchors[name] = append(anchors[name], a.Val)
				}
			}
		}
	}
	return anchors
}

// TestEveryLinkLeadsToWhatIsThere walks all links and whatever pages load. None begins with a slash,
// which would not work under a path.
func TestEveryLinkLeadsToWhatIsThere(t *testing.T) {
	s := site(t)
	anchors := anchorsOf(t, s)
	links := 0
	for name := range anchors {
		for _, e := range elements(t, s.File(name)) {
			for _, a := range e.Attr {
				if a.Key != "href" && a.Key != "src" {
					continue
				}
				to, err := url.Parse(a.Val)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if to.Host != "" || to.Scheme != "" {
					if e.Data != "a" {
						t.Errorf("%s loads %s", name, a.Val)
					}
					continue
				}
				links++
				page := name
				if to.Path != "" {
					page = path.Join(path.Dir(name), to.Path)
				}
				if strings.HasPrefix(to.Path, "/") || s.File(page) == nil {
					t.Errorf("%s links to %s, which is not there", name, a.Val)
				} else if to.Fragment != "" && !slices.Contains(anchors[page], to.Fragment) {
					t.Errorf("%s links to %s, which has no such anchor", name, a.Val)
				}
			}
		}
	}
	if links < 2500 {
		t.Errorf("%d links: the test has lost sight of them", links)
	}
}

func TestPagesHoldNothingThatTheirPolicyForbids(t *testing.T) {
	s := site(t)
	for name := range anchorsOf(t, s) {
		for _, e := range elements(t, s.File(name)) {
			if e.Data == "style" || e.Data == "iframe" || e.Data == "base" || e.Data == "script" && !slices.ContainsFunc(e.Attr, func(a html.Attribute) bool { return a.Key == "src" }) {
				t.Errorf("%s has an element %s", name, e)
			}
			for _, a := range e.Attr {
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
					t.Errorf("%s has an attribute %s", name, e)
				}
			}
		}
	}
	for _, danger := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "DOMParser", "http:", "https:"} {
		if bytes.Contains(s.File("manual.js"), []byte(danger)) {
			t.Errorf("manual.js has %s", danger)
		}
	}
}

func TestAnchorsAreThoseOfGitHub(t *testing.T) {
	used := map[string]int{}
	for _, c := range []struct{ heading, want string }{
		{"Keys", "keys"},
		{"Two ports of 512 bits", "two-ports-of-512-bits"},
		{"Keys", "keys-1"},
		{"OpenAI's responses", "openais-responses"},
		{"lm-evaluation-harness", "lm-evaluation-harness"},
		{"SMMLA (i8mm: Graviton 3 and 4)", "smmla-i8mm-graviton-3-and-4"},
		{"kv_memory — größe", "kv_memory--größe"},
	} {
		if got := slug(c.heading, used); got != c.want {
			t.Errorf("slug(%q) = %q, want %q", c.heading, got, c.want)
		}
	}
}

func TestWhatTheSiteCannotShowIsRefusedByName(t *testing.T) {
	for said, readme := range map[string]string{
		"HTML in Markdown: <b>":         "# A\n\nsome <b>bold</b> words\n",
		"HTML in Markdown: <table>":     "# A\n\n<table></table>\n",
		"open gone.md":                  "# A\n\n[b](gone.md)\n",
		"does not begin with a title":   "words\n",
		"which no link leads to":        "# A\n\nwords\n",
		"two files of the site are a":   "# A\n\n[a](a.txt) [b](docs/a.txt)\n",
		"README.md: open ../outside.md": "# A\n\n[a](../outside.md)\n",
	} {
		repository := fstest.MapFS{start: {Data: []byte(readme)}, "a.txt": {}, "docs/a.txt": {Data: []byte("a")}}
		if said == "two files of the site are a" {
			repository["a.txt"] = &fstest.MapFile{Data: []byte("a")}
		}
		_, err := Build(repository)
		if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(said, "README.md: open ")) {
			t.Errorf("%q: error %v, want %q", readme, err, said)
		}
	}
}

func TestTheSearchHasWhatPeopleLookFor(t *testing.T) {
	index := string(site(t).File("search.js"))
	if !strings.HasPrefix(index, `searchable([{"path":"index.html"`) {
		t.Errorf("search.js begins with %.60s", index)
	}
	for _, want := range []string{"--api-keys-file", "lutra_time_to_first_token_seconds", "server.max_requests", `["memory","Memory",`, "X-Lutra-Scaling"} {
		if !strings.Contains(index, want) {
			t.Errorf("search.js has no %s", want)
		}
	}
}

func ask(t *testing.T, at string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, at, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	shared().ServeHTTP(w, r)
	return w.Result()
}

var shared = sync.OnceValue(func() http.Handler { return Handler(repository) })

func TestTheHandlerServesTheSite(t *testing.T) {
	s := site(t)
	for at, want := range map[string]struct{ file, kind string }{
		"/docs/":                    {"index.html", "text/html; charset=utf-8"},
		"/docs/serving.html":        {"serving.html", "text/html; charset=utf-8"},
		"/docs/adr/":                {"adr/index.html", "text/html; charset=utf-8"},
		"/docs/npu.svg":             {"npu.svg", "image/svg+xml"},
		"/docs/config.yaml":         {"config.yaml", "text/plain; charset=utf-8"},
		"/docs/search.js":           {"search.js", "text/javascript; charset=utf-8"},
		"/docs/examples/index.html": {"examples/index.html", "text/html; charset=utf-8"},
	} {
		for _, coding := range []string{"", "gzip;q=0, br", "br, gzip;q=0.8"} {
			res := ask(t, at, "Accept-Encoding", coding)
			body := io.Reader(res.Body)
			if zipped := res.Header.Get("Content-Encoding") == "gzip"; zipped != strings.HasPrefix(coding, "br") {
				t.Errorf("%s, asked with %q: gzip is %v", at, coding, zipped)
			} else if zipped {
				z, err := gzip.NewReader(body)
				if err != nil {
					t.Fatal(err)
				}
				body = z
			}
			data, err := io.ReadAll(body)
			if err != nil || res.StatusCode != http.StatusOK || !bytes.Equal(data, s.File(want.file)) {
				t.Errorf("%s: status %d, %d bytes, error %v", at, res.StatusCode, len(data), err)
			}
			if res.Header.Get("Content-Type") != want.kind || !strings.HasPrefix(res.Header.Get("Content-Security-Policy"), "default-src 'none'") {
				t.Errorf("%s has the headers %v", at, res.Header)
			}
			if again := ask(t, at, "Accept-Encoding", coding, "If-None-Match", res.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
				t.Errorf("%s is sent again with status %d", at, again.StatusCode)
			}
		}
	}
	for _, at := range []string{"/docs/gone.html", "/docs/../main.go", "/docs/serving", "/docs/nothing/"} {
		if res := ask(t, at); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", at, res.StatusCode)
		}
	}
	if res := ask(t, "/docs"); res.StatusCode != http.StatusMovedPermanently || res.Header.Get("Location") != "docs/" {
		t.Errorf("/docs: status %d to %q: a proxy's path is lost", res.StatusCode, res.Header.Get("Location"))
	}
}

func TestTheSiteIsWrittenIntoAFolder(t *testing.T) {
	s := &Site{files: map[string][]byte{"index.html": []byte("a"), "adr/index.html": []byte("b")}}
	dir := filepath.Join(t.TempDir(), "new", "site")
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range s.files {
		if got, err := fs.ReadFile(os.DirFS(dir), name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is %q, error %v", name, got, err)
		}
	}
}
