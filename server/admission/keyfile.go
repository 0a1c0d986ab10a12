package admission

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// Credential is a key that clients may show.
type Credential struct {
	Name string // for logs and metrics; empty: the beginning of the key's hash
	Key  string
}

// Bounds of a file of keys.
const (
	maxKeyFile = 1 << 20 // bytes
	maxKeys    = 1024    // each has series in /metrics
	maxKey     = 4096    // bytes
)

// keyName is what a name may be: it goes into logs and labels of metrics.
var keyName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// ReadKeys reads a file of keys, one a line: KEY, NAME: KEY or NAME KEY. Empty lines and
// those that begin with # are skipped. Its errors name lines and never show a key. A file
// without keys is an error: a server without keys is open to all.
func ReadKeys(path string) ([]Credential, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxKeyFile:
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxKeyFile)
	}
	keys, err := parseKeys(string(bytes.TrimPrefix(text, []byte("\ufeff"))))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

func parseKeys(text string) (list []Credential, err error) {
	names, keys := map[string]int{}, map[string]int{} // to their lines
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		c, err := parseKey(line)
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", n, err)
		case c.Name != "" && names[c.Name] > 0:
			return nil, fmt.Errorf("line %d: the name %s is that of line %d", n, c.Name, names[c.Name])
		case keys[c.Key] > 0:
			return nil, fmt.Errorf("line %d: the key is that of line %d", n, keys[c.Key])
		case len(list) == maxKeys:
			return nil, fmt.Errorf("more than %d keys", maxKeys)
		}
		names[c.Name], keys[c.Key] = n, n
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("has no keys")
	}
	return list, nil
}

// parseKey reads a line. No bearer key has a colon (RFC 6750), so that the first one
// ends a name.
func parseKey(line string) (c Credential, err error) {
	words := strings.Fields(line)
	if name, key, named := strings.Cut(line, ":"); named {
		words = append([]string{strings.TrimSpace(name)}, strings.Fields(key)...)
	} else if len(words) == 1 {
		words = []string{"", line}
	}
	if len(words) != 2 || strings.Contains(words[0], " ") {
		return c, errors.New("want KEY, or NAME: KEY")
	}
	c = Credential{Name: words[0], Key: words[1]}
	switch {
	case c.Name == "" && strings.HasPrefix(line, ":"), c.Name != "" && !keyName.MatchString(c.Name):
		return c, errors.New("the name is not 1 to 64 letters, digits, dots, hyphens, underscores and @")
	case len(c.Key) > maxKey:
		return c, fmt.Errorf("the key has more than %d bytes", maxKey)
	case strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }):
		return c, errors.New("the key has characters that no bearer key has")
	}
	return c, nil
}
