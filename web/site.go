package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

//go:embed index.html *.css app.js sw.js manifest.webmanifest icon.svg icons/*.png js/*.js libraries
var files embed.FS

// kinds are the media types of files; not from package mime, which reads the machine's
// tables.
var kinds = map[string]string{
	".html":        "text/html; charset=utf-8",
	".css":         "text/css; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".svg":         "image/svg+xml",
	".png":         "image/png",
	".woff2":       "font/woff2",
	".webmanifest": "application/manifest+json",
	"":             "text/plain; charset=utf-8", // licences and hashes
}

const (
	page   = "index.html"
	worker = "sw.js"
)

// site is the page's files by name, and the version of all.
type site struct {
	files   map[string]*file
	version string
}

// file is a file with the headers that depend on its content.
type file struct {
	data   []byte
	kind   string        // media type
	etag   string        // without quotes
	packed func() []byte // data by gzip, made once; nil: no smaller
}

// newFile returns the file of a name.
func newFile(name string, data []byte) *file {
	return &file{data, kinds[path.Ext(name)], hash(data), sync.OnceValue(func() []byte { return pack(data) })}
}

// load reads the embedded files. The page's own addresses get the version, and the worker
// gets it with the names of what it keeps.
func load() *site {
	s := &site{files: map[string]*file{}}
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		s.files[name] = newFile(name, data)
		sum.Write([]byte(name + "\x00" + s.files[name].etag))
		return nil
	})
	if err != nil {
		panic("web: embedded files: " + strings.TrimSpace(err.Error())) // the binary itself is broken
	}
	s.version = hex.EncodeToString(sum.Sum(nil)[:8])
	html := s.files[page].data
	s.files[page] = newFile(page, bytes.ReplaceAll(html, []byte(`"web/`), []byte(`"web/`+s.version+`/`)))
	s.files[worker] = newFile(worker, append(s.kept(), s.files[worker].data...))
	return s
}

// kept returns the beginning of the worker's script.
func (s *site) kept() []byte {
	var names []string
	for name, f := range s.files {
		if name != page && name != worker && f.kind != kinds[""] {
			names = append(names, s.version+"/"+name)
		}
	}
	slices.Sort(names)
	list, _ := json.Marshal(names) // of strings
	return []byte("const version = '" + s.version + "';\nconst files = " + string(list) + ";\n")
}

// name returns the file that an address names, and whether by this version. One of another
// version gets the file as it is now: its page was opened before the binary was replaced.
func (s *site) name(address string) (name string, versioned bool) {
	if address == "/" {
		return page, false
	}
	name = strings.TrimPrefix(address, Prefix)
	version, rest, found := strings.Cut(name, "/")
	if _, err := hex.DecodeString(version); found && err == nil && len(version) == len(s.version) {
		return rest, version == s.version
	}
	return name, false
}

// hash returns some of the data's SHA-256 in hexadecimal.
func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// pack compresses data, unless that gains little.
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
