package manual

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// Prefix is the path that Handler serves the site under.
const Prefix = "/docs/"

// The policies of pages and of pictures: SVG has its styles inside.
const (
	policy        = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	policyPicture = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
)

// kinds are media types, not from package mime, which reads the machine's tables; whatever else is
// linked is text.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".png":  "image/png",
}

// served is a file with what its headers say.
type served struct {
	plain, zipped []byte // zipped is nil where that is no shorter
	kind, tag     string
}

// Handler answers GET and HEAD for Prefix and what is below it, and sends those who leave out the
// slash there. The site is built at the first request. Documents of which none can be built panic:
// the binary itself is broken.
func Handler(repository fs.FS) http.Handler {
	files := sync.OnceValue(func() map[string]served { return load(repository) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, below := strings.CutPrefix(r.URL.Path, Prefix)
		if !below { // a relative address, which is right behind a proxy that takes a prefix away
			w.Header().Set("Location", strings.TrimPrefix(Prefix, "/"))
			w.WriteHeader(http.StatusMovedPermanently)
			return
		}
		if name == "" || strings.HasSuffix(name, "/") {
			name += "index.html"
		}
		f, ok := files()[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		f.answer(w, r, policyOf(name))
	})
}

func policyOf(name string) string {
	if path.Ext(name) == ".svg" {
		return policyPicture
	}
	return policy
}

func (f *served) answer(w http.ResponseWriter, r *http.Request, policy string) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache") // a new binary has new documents
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Add("Vary", "Accept-Encoding")
	data, tag := f.plain, f.tag
	if f.zipped != nil && takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		data, tag = f.zipped, tag+"-gzip"
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// takesGzip tells whether the client names gzip among what it takes, and not with a weight of 0.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, weight, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";")
		if strings.EqualFold(coding, "gzip") {
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

func load(repository fs.FS) map[string]served {
	site, err := Build(repository)
	if err != nil {
		panic(err)
	}
	files := map[string]served{}
	z := gzip.NewWriter(nil)
	for name, data := range site.files {
		kind, known := kinds[path.Ext(name)]
		if !known {
			kind = "text/plain; charset=utf-8"
		}
		sum := sha256.Sum256(data)
		files[name] = served{data, zip(z, data), kind, hex.EncodeToString(sum[:8])}
	}
	return files
}

// zip compresses by a writer that nothing else uses, or returns nil where that gains nothing.
func zip(z *gzip.Writer, data []byte) []byte {
	var out bytes.Buffer
	z.Reset(&out)
	if _, err := z.Write(data); err != nil {
		panic(err) // a Buffer takes all
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	if out.Len() >= len(data) {
		return nil
	}
	return out.Bytes()
}
