package hub

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Scheme begins the names of files on the hub.
const Scheme = "hf:"

// IsName reports whether a name begins as one of the hub, or of Ollama's registry, does.
func IsName(name string) bool {
	return strings.HasPrefix(name, Scheme) || strings.HasPrefix(name, OllamaScheme)
}

// Ref names a model file of the hub. At most one of File and Quant is set; with
// neither the file is the repository's only model, or the default among several.
// With a Tag it names a model of Ollama's registry, whose namespace is Owner, and a File is
// one of its layers.
type Ref struct {
	Owner, Repo string
	File        string // its path in the repository
	Quant       string // a word in its name, such as Q4_K_M
	Tag         string // Ollama's word for a version, such as 9b-q2_0
}

// The hub's own bounds on names of owners and repositories. Two dashes part
// them in the names of the cache's folders.
var repoWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)

var quantWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)

// maxPath bounds the path of a file in a repository, in bytes.
const maxPath = 512

// Parse reads hf:OWNER/REPO[:FILE|:QUANT] and ollama:[NAMESPACE/]NAME[:TAG].
func Parse(name string) (Ref, error) {
	if strings.HasPrefix(name, OllamaScheme) {
		return parseOllama(name)
	}
	const form = "want hf:OWNER/REPO, hf:OWNER/REPO:FILE.gguf or hf:OWNER/REPO:QUANT"
	rest, ok := strings.CutPrefix(name, Scheme)
	if !ok || len(name) > 2*maxPath {
		return Ref{}, fmt.Errorf("%q names no file of the hub; %s", brief(name), form)
	}
	repo, which, selects := strings.Cut(rest, ":")
	r := Ref{}
	r.Owner, r.Repo, _ = strings.Cut(repo, "/")
	for _, word := range []string{r.Owner, r.Repo} {
		if !validRepoWord(word) {
			return Ref{}, fmt.Errorf("%q is no name of a repository; %s", brief(repo), form)
		}
	}
	switch {
	case !selects:
	case isGGUF(which):
		if err := validFile(which); err != nil {
			return Ref{}, err
		}
		r.File = which
	case quantWord.MatchString(which):
		r.Quant = which
	default:
		return Ref{}, fmt.Errorf("%q is neither a GGUF file nor a quantisation such as Q4_K_M; %s", brief(which), form)
	}
	return r, nil
}

func validRepoWord(w string) bool {
	return repoWord.MatchString(w) && !strings.Contains(w, "--") && !strings.Contains(w, "..")
}

// validFile refuses paths that could leave the folder of a snapshot, on any
// system, or write something there that is no plain file.
func validFile(name string) error {
	odd := strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune(`\:*?"<>|`, r) })
	if len(name) > maxPath || odd || name == "." || !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("the file name %q is refused: it could stand for something outside the cache", brief(name))
	}
	return nil
}

func isGGUF(name string) bool { return strings.EqualFold(path.Ext(name), ".gguf") }

// with returns the name of a file of the repository; every file of a model of Ollama's
// registry has the model's name.
func (r Ref) with(file string) Ref {
	if r.Tag != "" {
		file = ""
	}
	return Ref{Owner: r.Owner, Repo: r.Repo, File: file, Tag: r.Tag}
}

// ID returns the repository as the hub writes it.
func (r Ref) ID() string { return r.Owner + "/" + r.Repo }

// String writes r as Parse reads it.
func (r Ref) String() string {
	if r.Tag != "" {
		if r.Owner == library {
			return OllamaScheme + r.tagged()
		}
		return OllamaScheme + r.Owner + "/" + r.tagged()
	}
	s := Scheme + r.ID()
	if which := cmp.Or(r.File, r.Quant); which != "" {
		s += ":" + which
	}
	return s
}

// Name returns a short name for the model: the repository's, without what only says
// that it has GGUF files. Of Ollama's registry it is the name and the tag.
func (r Ref) Name() string {
	if r.Tag != "" {
		return r.tagged()
	}
	name := r.Repo
	if cut := len(name) - len("-gguf"); cut > 0 && strings.EqualFold(name[cut:], "-gguf") {
		name = name[:cut]
	}
	return name
}

// brief bounds what an error repeats of names and answers.
func brief(s string) string {
	const most = 120
	if len(s) > most {
		return s[:most] + " ..."
	}
	return s
}
