package hub

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options say where files come from and where they are kept.
type Options struct {
	Cache    string // folder of the cache
	Endpoint string // base URL of the hub
	Registry string // base URL of Ollama's registry; empty: the public one
	Token    string // empty: none
	Offline  bool   // ask nobody
	Copy     bool   // make no symbolic links
	Agent    string // the program, as the hub is told
	// Memory returns the bytes of memory that are free, which Pull chooses by where a repository
	// has several models; nil, or 0: there is enough for all.
	Memory func() int64
	// Chose is called when Pull takes one of several models of a repository of its own accord;
	// nil: nothing is.
	Chose func(file, why string)
	// Unused is called for what comes with a model of Ollama's registry and is not read; nil:
	// nothing is.
	Unused func(what string)
	// Waiting is called when another process downloads the same file; nil: nothing is.
	Waiting func()
	// Retrying is called when the hub is asked the same again, after a pause, because of
	// err; not for the parts of a file, whose progress tells enough. nil: nothing is.
	Retrying func(err error, pause time.Duration)
}

// defaultEndpoint is the public hub.
const defaultEndpoint = "https://huggingface.co"

// maxToken bounds the token, in bytes; the hub's tokens have 37.
const maxToken = 4096

// FromEnvironment reads the variables that huggingface_hub reads: HF_HOME,
// HF_HUB_CACHE, HF_ENDPOINT, HF_HUB_OFFLINE, HF_TOKEN, HF_TOKEN_PATH and the
// older names of them, and LUTRA_OLLAMA_REGISTRY. home is the user's folder; empty: there is none.
func FromEnvironment(getenv func(string) string, home string) (Options, error) {
	expand := func(p string) string {
		if p == "~" || strings.HasPrefix(p, "~/") {
			p = home + p[1:]
		}
		return os.Expand(p, getenv)
	}
	hf := expand(cmp.Or(getenv("HF_HOME"), within(cmp.Or(getenv("XDG_CACHE_HOME"), within(home, ".cache")), "huggingface")))
	o := Options{
		Cache:    expand(cmp.Or(getenv("HF_HUB_CACHE"), getenv("HUGGINGFACE_HUB_CACHE"), within(hf, "hub"))),
		Endpoint: cmp.Or(getenv("HF_ENDPOINT"), defaultEndpoint),
		Registry: getenv("LUTRA_OLLAMA_REGISTRY"),
		Offline:  isTrue(cmp.Or(getenv("HF_HUB_OFFLINE"), getenv("TRANSFORMERS_OFFLINE"))),
		Copy:     isTrue(getenv("HF_HUB_DISABLE_SYMLINKS")),
	}
	token := cmp.Or(getenv("HF_TOKEN"), getenv("HUGGING_FACE_HUB_TOKEN"))
	if path := expand(cmp.Or(getenv("HF_TOKEN_PATH"), within(hf, "token"))); path != "" && token == "" && !isTrue(getenv("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
		var err error
		if token, err = readToken(path); err != nil {
			return Options{}, err
		}
	}
	o.Token = strings.TrimSpace(token)
	return o, o.validate()
}

// within returns a path in a folder; without a folder there is none.
func within(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// isTrue reads a variable as huggingface_hub does.
func isTrue(v string) bool {
	return slices.Contains([]string{"1", "ON", "YES", "TRUE"}, strings.ToUpper(v))
}

func readToken(path string) (string, error) {
	text, err := readPlain(path, maxToken)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("the hub's token: %w", err)
	}
	return string(text), nil
}

// validate never repeats the token.
func (o *Options) validate() error {
	if o.Cache == "" {
		return errors.New("there is no folder for the hub's cache: set HF_HOME")
	}
	if err := checkEndpoint("HF_ENDPOINT", o.Endpoint, defaultEndpoint); err != nil {
		return err
	}
	if err := checkEndpoint("LUTRA_OLLAMA_REGISTRY", cmp.Or(o.Registry, defaultRegistry), defaultRegistry); err != nil {
		return err
	}
	if len(o.Token) > maxToken || strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("HF_TOKEN: the token has characters that no token has")
	}
	return nil
}

// checkEndpoint refuses what is no base URL of a server.
func checkEndpoint(variable, endpoint, example string) error {
	u, err := url.Parse(strings.TrimRight(endpoint, "/"))
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s: %q is no URL such as %s", variable, brief(endpoint), example)
	case u.User != nil:
		return fmt.Errorf("%s: a name or password in it is not supported", variable)
	}
	return nil
}
