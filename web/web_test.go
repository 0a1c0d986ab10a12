package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
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

// eachFile calls f for every embedded file that the project wrote.
func eachFile(t *testing.T, f func(name, text string)) {
	t.Helper()
	n := 0
	for name, file := range load().files {
		if n++; !strings.HasPrefix(name, "libraries/") {
			f(name, string(file.Data))
		}
	}
	if n < 50 {
		t.Fatalf("read %d embedded files", n)
	}
}

func TestEveryFileIsServedWithItsTypeAndThePolicy(t *testing.T) {
	for name, file := range load().files {
		res := get(t, Prefix+name)
		if res.StatusCode != http.StatusOK || res.Header.Get("Content-Length") != strconv.Itoa(len(file.Data)) {
			t.Errorf("%s: status %d, length %s", name, res.StatusCode, res.Header.Get("Content-Length"))
		}
		kind := res.Header.Get("Content-Type")
		if text := strings.HasPrefix(kind, "text/plain"); kind == "" || text && path.Ext(name) != "" {
			t.Errorf("%s: Content-Type %q", name, kind)
		}
		if p := res.Header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'self'") || strings.Contains(p, "unsafe") {
			t.Errorf("%s: Content-Security-Policy %q", name, p)
		}
	}
	if res := get(t, "/"); res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		t.Errorf("the page: status %d, Content-Type %q", res.StatusCode, res.Header.Get("Content-Type"))
	}
	for _, at := range []string{"/web/", "/web/web.go", "/web/test/package.json", "/web/../web.go", "/web/0123456789abcdef/", "/web/x/app.js"} {
		if res := get(t, at); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", at, res.StatusCode)
		}
	}
}

func TestAnUnchangedFileIsNotSentAgain(t *testing.T) {
	tag := get(t, "/").Header.Get("ETag")
	if res := get(t, "/", "If-None-Match", tag); tag == "" || res.StatusCode != http.StatusNotModified {
		t.Errorf("with ETag %q: status %d, want 304", tag, res.StatusCode)
	}
}

func TestFilesOfAVersionAreKeptAndOthersAskedFor(t *testing.T) {
	html, _ := io.ReadAll(get(t, "/").Body)
	address := regexp.MustCompile(`"(web/[0-9a-f]{16}/)app\.js"`).FindSubmatch(html)
	if address == nil {
		t.Fatalf("the page names no version of app.js:\n%s", html)
	}
	for at, want := range map[string]string{
		"/" + string(address[1]) + "js/api.js": "public, max-age=31536000, immutable",
		"/web/0123456789abcdef/js/api.js":      "no-cache", // a page of another version
		"/web/js/api.js":                       "no-cache",
		"/":                                    "no-cache",
		"/web/sw.js":                           "no-cache",
	} {
		if res := get(t, at); res.StatusCode != http.StatusOK || res.Header.Get("Cache-Control") != want {
			t.Errorf("%s: status %d, Cache-Control %q, want %q", at, res.StatusCode, res.Header.Get("Cache-Control"), want)
		}
	}
}

func TestFilesAreCompressedForThoseWhoReadGzip(t *testing.T) {
	want := load().files["js/api.js"].Data
	for accepted, packed := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0, br": false, "br": false, "": false} {
		res := get(t, "/web/js/api.js", "Accept-Encoding", accepted)
		body := io.Reader(res.Body)
		if got := res.Header.Get("Content-Encoding") == "gzip"; got != packed {
			t.Errorf("Accept-Encoding %q: compressed %v, want %v", accepted, got, packed)
		} else if packed {
			body, _ = gzip.NewReader(res.Body)
		}
		if got, err := io.ReadAll(body); !bytes.Equal(got, want) {
			t.Errorf("Accept-Encoding %q: %d bytes, error %v; want %d", accepted, len(got), err, len(want))
		}
		tag := res.Header.Get("ETag")
		if res := get(t, "/web/js/api.js", "Accept-Encoding", accepted, "If-None-Match", tag); res.StatusCode != http.StatusNotModified {
			t.Errorf("Accept-Encoding %q with ETag %s: status %d, want 304", accepted, tag, res.StatusCode)
		}
	}
	if res := get(t, "/web/icons/192.png", "Accept-Encoding", "gzip"); res.Header.Get("Content-Encoding") != "" {
		t.Error("a picture is compressed twice")
	}
}

func TestTheWorkerKeepsAllThatThePageMayLoad(t *testing.T) {
	s := load()
	head, _, _ := strings.Cut(string(s.files[worker].Data), "\n\n")
	for name := range s.files {
		license := path.Ext(name) == ""
		if kept := strings.Contains(head, `"`+s.version+"/"+name+`"`); kept == (license || name == page || name == worker) {
			t.Errorf("%s: kept %v", name, kept)
		}
	}
	if got := get(t, "/web/sw.js").Header.Get("Service-Worker-Allowed"); got != "../" {
		t.Errorf("Service-Worker-Allowed: %q", got)
	}
}

func TestLibrariesAreThoseOfTheirReleases(t *testing.T) {
	sums, err := files.ReadFile("libraries/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{"libraries/SHA256SUMS": true}
	for line := range strings.Lines(string(sums)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		data, err := files.ReadFile("libraries/" + name)
		if got := sha256.Sum256(data); err != nil || hex.EncodeToString(got[:]) != want {
			t.Errorf("%s: hash %x, error %v; node web/test/libraries.mjs writes it", name, got, err)
		}
		listed["libraries/"+name] = true
	}
	for name := range load().files {
		if strings.HasPrefix(name, "libraries/") && !listed[name] {
			t.Errorf("%s is not in SHA256SUMS", name)
		}
	}
}

func TestThePageAsksNothingOfOtherHosts(t *testing.T) {
	// Names of XML namespaces are no addresses to be fetched from.
	address := regexp.MustCompile(`(https?:)?//[a-z0-9-]+\.[a-z][^\s'"]*`)
	eachFile(t, func(name, text string) {
		text = strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")
		text = strings.ReplaceAll(text, "http://www.w3.org/1998/Math/MathML", "")
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

// A text is written in English where it is said; the table of another language is found by it.
func TestEveryTextOfThePageHasItsChinese(t *testing.T) {
	table := map[string]bool{} // English → used
	entry := regexp.MustCompile(`(?m)(?:^  |, )'((?:[^'\\]|\\.)*)': '((?:[^'\\]|\\.)*)'`)
	plain := strings.NewReplacer(`\'`, "'", `\\`, `\`, `\u00a0`, "\u00a0", "\\`", "`")
	for _, m := range entry.FindAllStringSubmatch(string(load().files["js/chinese.js"].Data), -1) {
		english := plain.Replace(m[1])
		table[english] = false
		if holes := strings.Count(english, "{}"); holes != strings.Count(m[2], "{}") {
			t.Errorf("%q has %d values, in Chinese not so many: %q", english, holes, m[2])
		}
	}
	use := func(where, text string) {
		if _, ok := table[text]; !ok {
			t.Errorf("%s: js/chinese.js lacks %q", where, text)
		}
		table[text] = true
	}
	tagged := regexp.MustCompile("[^\\w$]t`((?:[^`\\\\]|\\\\.)*)`")
	value := regexp.MustCompile(`\$\{(?:[^{}]|\{[^{}]*\})*\}`)
	eachFile(t, func(name, text string) {
		if path.Ext(name) != ".js" || name == "js/words.js" {
			return
		}
		for _, m := range tagged.FindAllStringSubmatch(code(text), -1) {
			use(name, plain.Replace(value.ReplaceAllString(m[1], "{}")))
		}
	})
	letters := regexp.MustCompile(`\pL`)
	named := []string{"Lutra", "model", "n"} // in every language
	markup := html.NewTokenizer(bytes.NewReader(load().files[page].Data))
	for kind := markup.Next(); kind != html.ErrorToken; kind = markup.Next() {
		token := markup.Token()
		texts := []string{}
		if kind == html.TextToken {
			texts = append(texts, token.Data)
		}
		for _, a := range token.Attr {
			if slices.Contains([]string{"aria-label", "title", "placeholder", "data-name"}, a.Key) || a.Key == "content" && strings.HasPrefix(a.Val, "Lutra:") {
				texts = append(texts, a.Val)
			}
		}
		for _, text := range texts {
			if text = strings.Join(strings.Fields(text), " "); letters.MatchString(text) && !slices.Contains(named, text) && !strings.Contains(text, "JavaScript") {
				use(page, text)
			}
		}
	}
	for english, used := range table {
		if !used {
			t.Errorf("nothing says %q any more", english)
		}
	}
	if len(table) < 300 {
		t.Errorf("%d texts: the test has lost sight of them", len(table))
	}
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
		if text = code(text); name == "sw.js" { // it answers for the page's own files
			return
		}
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
