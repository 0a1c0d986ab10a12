package doctor

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Folder is one that a server writes to.
type Folder struct {
	Path string
	Err  error // it cannot be written to
}

// LookAt tries to write to a folder, or to the nearest one above it that there is.
func LookAt(path string) Folder {
	f := Folder{Path: path}
	if path == "" {
		f.Err = errors.New("there is none")
		return f
	}
	at := path
	for {
		_, err := os.Stat(at)
		above := filepath.Dir(at)
		if !errors.Is(err, fs.ErrNotExist) || above == at {
			break
		}
		at = above
	}
	try, err := os.CreateTemp(at, ".lutra-doctor-*")
	if err == nil {
		err = errors.Join(try.Close(), os.Remove(try.Name()))
	}
	f.Err = err
	return f
}

func (f Folder) finding(what string) Finding {
	if f.Err == nil {
		return Finding{What: what, Says: f.Path}
	}
	says := f.Err.Error()
	var at *fs.PathError
	if errors.As(f.Err, &at) { // without the name of the file that was tried
		says = at.Err.Error()
	}
	return Finding{What: what, Level: Slow, Says: cmp.Or(f.Path, "no folder") + ": " + says}
}
