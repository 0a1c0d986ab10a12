package web

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

// eachFile calls f for every embedded file.
func eachFile(t *testing.T, f func(name, text string)) {
	t.Helper()
	n := 0
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		n++
		f(name, string(data))
		return err
	})
	if err != nil || n < 10 {
		t.Fatalf("read %d embedded files, error %v", n, err)
	}
}

func TestEveryFileIsServedWithItsTypeAndThePolicy(t *testing.T) {
	eachFile(t, func(name, text string) {
		res := get(t, Prefix+name)
		if res.StatusCode != http.StatusOK || res.ContentLength != int64(len(text)) && res.Header.Get("Content-Length") == "" {
			t.Errorf("%s: status %d", name, res.StatusCode)
		}
		if kind := res.Header.Get("Content-Type"); kind == "" || strings.HasPrefix(kind, "text/plain") {
			t.Errorf("%s: Content-Type %q", name, kind)
		}
		if p := res.Header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'self'") {
			t.Errorf("%s: Content-Security-Policy %q", name, p)
		}
	})
	if res := get(t, "/"); res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		t.Errorf("the page: status %d, Content-Type %q", res.StatusCode, res.Header.Get("Content-Type"))
	}
	for _, path := range []string{"/web/", "/web/web.go", "/web/test/package.json", "/web/../web.go"} {
		if res := get(t, path); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, res.StatusCode)
		}
	}
}

func TestAnUnchangedFileIsNotSentAgain(t *testing.T) {
	tag := get(t, "/").Header.Get("ETag")
	if res := get(t, "/", "If-None-Match", tag); tag == "" || res.StatusCode != http.StatusNotModified {
		t.Errorf("with ETag %q: status %d, want 304", tag, res.StatusCode)
	}
}

func TestThePageAsksNothingOfOtherHosts(t *testing.T) {
	// Names of XML namespaces are no addresses to be fetched from.
	address := regexp.MustCompile(`(https?:)?//[a-z0-9-]+\.[a-z][^\s'"]*`)
	eachFile(t, func(name, text string) {
		text = strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")
		for _, found := range address.FindAllString(text, -1) {
			t.Errorf("%s names %s", name, found)
		}
	})
}

func TestNoTextIsEverParsedAsMarkup(t *testing.T) {
	danger := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|srcdoc|setHTML`)
	eachFile(t, func(name, text string) {
		for _, found := range danger.FindAllString(text, -1) {
			t.Errorf("%s uses %s", name, found)
		}
	})
}

func TestEveryModuleIsSmall(t *testing.T) {
	eachFile(t, func(name, text string) {
		if n := strings.Count(text, "\n"); strings.HasSuffix(name, ".js") && n > 300 {
			t.Errorf("%s has %d lines: divide it", name, n)
		}
	})
}

// An interface that is used in one file alone can be replaced, bounded and tested there.
func TestEachStoreAndSenderHasOneFile(t *testing.T) {
	owners := map[string]*regexp.Regexp{
		"js/store.js":     regexp.MustCompile(`\b(local|session)Storage\b`),
		"js/library.js":   regexp.MustCompile(`\bindexedDB\b|\bBroadcastChannel\b`),
		"js/clipboard.js": regexp.MustCompile(`navigator\.clipboard|execCommand`),
		"js/api.js":       regexp.MustCompile(`\bfetch\(`),
	}
	used := map[string]bool{}
	eachFile(t, func(name, text string) {
		text = code(text)
		for owner, interfaces := range owners {
			found := interfaces.FindString(text)
			if found != "" && name == owner {
				used[owner] = true
			} else if found != "" {
				t.Errorf("%s uses %s, which belongs to %s", name, found, owner)
			}
		}
	})
	if len(used) != len(owners) {
		t.Errorf("used are %v", used)
	}
}

// Browsers leave much out on pages of other machines over plain http, as in a local network.
func TestThePageNeedsNothingThatPlainHTTPLacks(t *testing.T) {
	lacking := regexp.MustCompile(`crypto\.(randomUUID|subtle)|navigator\.(locks|storage)\b|show(Open|Save)FilePicker`)
	eachFile(t, func(name, text string) {
		for _, found := range lacking.FindAllString(code(text), -1) {
			t.Errorf("%s uses %s", name, found)
		}
	})
}

// code returns a module's lines that are no comments.
func code(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if start := strings.TrimLeft(line, " "); !strings.HasPrefix(start, "//") && !strings.HasPrefix(start, "/*") && !strings.HasPrefix(start, "*") {
			b.WriteString(line)
		}
	}
	return b.String()
}
