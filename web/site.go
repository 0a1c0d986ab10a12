package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/lutra-lm/lutra/internal/static"
)

//go:embed index.html *.css app.js sw.js manifest.webmanifest icon.svg icons/*.png js/*.js libraries
var files embed.FS

const (
	page   = "index.html"
	worker = "sw.js"
)

// site is the page's files by name, and the version of all.
type site struct {
	files   map[string]*static.File
	version string
}

// load reads the embedded files. The page's own addresses get the version, and the worker
// gets it with the names of what it keeps. It does so once, since servers that follow each other have the same files.
var load = sync.OnceValue(func() *site {
	s := &site{files: map[string]*static.File{}}
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		s.files[name] = static.New(name, data)
		sum.Write([]byte(name + "\x00" + s.files[name].Tag))
		return nil
	})
	if err != nil {
		panic("web: embedded files: " + strings.TrimSpace(err.Error())) // the binary itself is broken
	}
	s.version = hex.EncodeToString(sum.Sum(nil)[:8])
	html := s.files[page].Data
	s.files[page] = static.New(page, bytes.ReplaceAll(html, []byte(`"web/`), []byte(`"web/`+s.version+`/`)))
	s.files[worker] = static.New(worker, append(s.kept(), s.files[worker].Data...))
	return s
})

// kept returns the beginning of the worker's script.
func (s *site) kept() []byte {
	var names []string
	for name := range s.files {
		if name != page && name != worker && path.Ext(name) != "" { // licences and hashes have no end
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
