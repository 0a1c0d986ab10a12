package manual

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// start is the document that all others are reached from.
const start = "README.md"

//go:embed assets
var assets embed.FS

// Site is a set of files by their path, of which index.html is the first to be read.
type Site struct {
	files map[string][]byte
}

// Build makes the site of what a repository's documents hold. A link to what is not in them, a
// document that no group of the contents lists, and HTML in Markdown are errors.
func Build(repository fs.FS) (*Site, error) {
	b := builder{repository: repository, site: &Site{files: map[string][]byte{}}, seen: map[string]bool{}}
	b.reach(start)
	for len(b.queue) > 0 {
		name := b.queue[0]
		b.queue = b.queue[1:]
		if err := b.add(name); err != nil {
			return nil, fmt.Errorf("manual: %s: %w", name, err)
		}
	}
	if err := b.finish(); err != nil {
		return nil, fmt.Errorf("manual: %w", err)
	}
	return b.site, nil
}

// Paths lists the files of the site.
func (s *Site) Paths() []string { return slices.Sorted(maps.Keys(s.files)) }

// File returns a file of the site; nil: there is none of this path.
func (s *Site) File(path string) []byte { return s.files[path] }

// Write writes the site into a folder, which it makes, over files of the same names.
func (s *Site) Write(dir string) error {
	for name, data := range s.files {
		to := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(to), 0o755)
		if err == nil {
			err = os.WriteFile(to, data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// builder walks documents by their links.
type builder struct {
	repository fs.FS
	site       *Site
	queue      []string
	seen       map[string]bool // names in the repository
	documents  []*document
}

// reach has the file or folder of a name added once.
func (b *builder) reach(name string) {
	if !b.seen[name] {
		b.seen[name] = true
		b.queue = append(b.queue, name)
	}
}

// add takes a document and reaches what it links to, or takes another file as it is.
func (b *builder) add(name string) error {
	text, err := b.read(name)
	if err != nil {
		return err
	}
	if !isPage(name) {
		return b.put(target(name), text)
	}
	d, err := parse(name, text, b.resolve)
	if err == nil {
		b.documents = append(b.documents, d)
	}
	return err
}

// read returns a file; of a folder, a list of its files.
func (b *builder) read(name string) ([]byte, error) {
	if path.Ext(name) != "" {
		return fs.ReadFile(b.repository, name)
	}
	list := bytes.NewBufferString("# " + strings.ToUpper(path.Base(name)[:1]) + path.Base(name)[1:] + "\n\n")
	err := fs.WalkDir(b.repository, name, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			short := strings.TrimPrefix(file, name+"/")
			fmt.Fprintf(list, "- [%s](%s)\n", short, path.Base(name)+"/"+short)
		}
		return err
	})
	return list.Bytes(), err
}

// resolve returns where in the site, relative to the page of a document, a link of it leads, and
// reaches that.
func (b *builder) resolve(from, to string) (string, error) {
	to, anchor, _ := strings.Cut(to, "#")
	name := from
	if to != "" {
		name = path.Join(path.Dir(from), to)
	}
	if info, err := fs.Stat(b.repository, name); err != nil {
		return "", err
	} else if info.IsDir() {
		if _, err := fs.Stat(b.repository, name+"/"+start); err == nil {
			name += "/" + start
		}
	}
	b.reach(name)
	if anchor != "" {
		anchor = "#" + anchor
		if name == from {
			return anchor, nil
		}
	}
	return relative(target(from), target(name)) + anchor, nil
}

// put adds a file.
func (b *builder) put(to string, data []byte) error {
	if b.site.files[to] != nil {
		return fmt.Errorf("two files of the site are %s", to)
	}
	b.site.files[to] = data
	return nil
}

// isPage tells whether a name belongs to a document or a folder.
func isPage(name string) bool { return path.Ext(name) == ".md" || path.Ext(name) == "" }

// target returns where in the site a file of the repository is.
func target(name string) string {
	name = strings.TrimPrefix(name, "docs/")
	switch {
	case path.Base(name) == start:
		return path.Join(path.Dir(name), "index.html")
	case path.Ext(name) == "":
		return name + "/index.html"
	case path.Ext(name) == ".md":
		return strings.TrimSuffix(name, ".md") + ".html"
	}
	return name
}

// relative returns the address of one path of the site in the page of another.
func relative(from, to string) string {
	at, err := filepath.Rel(filepath.FromSlash(path.Dir(from)), filepath.FromSlash(to))
	if err != nil {
		panic(err) // both are relative
	}
	return filepath.ToSlash(at)
}
