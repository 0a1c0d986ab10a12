// Package static serves files that stay the same while the program runs: with their media types and
// ETags, compressed once.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// kinds are media types by the ends of names, not from package mime, which reads the machine's
// tables.
var kinds = map[string]string{
	".html":        "text/html; charset=utf-8",
	".css":         "text/css; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".svg":         "image/svg+xml",
	".png":         "image/png",
	".woff2":       "font/woff2",
	".webmanifest": "application/manifest+json",
}

// File is a file with the headers that depend on its content.
type File struct {
	Data   []byte
	Kind   string        // media type: plain text where the name tells no other
	Tag    string        // ETag without quotes
	packed func() []byte // Data by gzip, made once; nil: hardly smaller
}

// New returns the file of a name. Data must not change any more.
func New(name string, data []byte) *File {
	kind, known := kinds[path.Ext(name)]
	if !known {
		kind = "text/plain; charset=utf-8"
	}
	sum := sha256.Sum256(data)
	return &File{data, kind, hex.EncodeToString(sum[:8]), sync.OnceValue(func() []byte { return pack(data) })}
}

// Serve answers GET and HEAD under a Content-Security-Policy. Browsers ask each time whether there is
// another file, unless the caller has set Cache-Control.
func (f *File) Serve(w http.ResponseWriter, r *http.Request, policy string) {
	h := w.Header()
	h.Set("Content-Type", f.Kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Add("Vary", "Accept-Encoding")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-cache") // a new binary has new files
	}
	data, tag := f.Data, f.Tag
	if packed := f.packed(); packed != nil && takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		data, tag = packed, tag+"-gzip"
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// takesGzip reports whether the client of r reads gzip.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, weight, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";")
		if strings.EqualFold(coding, "gzip") {
			return weight == "" || strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != ""
		}
	}
	return false
}

// pack compresses data; nil: that gains little.
func pack(data []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	z.Write(data)                                         // a buffer takes all
	z.Close()
	if b.Len() > len(data)*9/10 {
		return nil
	}
	return b.Bytes()
}
