package manual

import (
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/lutra-lm/lutra/internal/static"
)

// Prefix is the path that Handler serves the site under.
const Prefix = "/docs/"

// The policies of pages and of pictures: SVG has its styles inside.
const (
	policy        = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	policyPicture = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
)

// Handler answers GET and HEAD for Prefix and what is below it, and sends those who leave out the
// slash there. The site is built at the first request. Documents of which none can be built panic:
// the binary itself is broken.
func Handler(repository fs.FS) http.Handler {
	files := sync.OnceValue(func() map[string]*static.File { return load(repository) })
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
		f.Serve(w, r, policyOf(name))
	})
}

func policyOf(name string) string {
	if path.Ext(name) == ".svg" {
		return policyPicture
	}
	return policy
}

func load(repository fs.FS) map[string]*static.File {
	site, err := Build(repository)
	if err != nil {
		panic(err)
	}
	files := map[string]*static.File{}
	for name, data := range site.files {
		files[name] = static.New(name, data)
	}
	return files
}
