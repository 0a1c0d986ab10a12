package admission

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Bounds of a file of keys.
const (
	maxKeyFile = 1 << 20 // bytes
	maxKeys    = 1024    // each has series in /metrics
	maxKey     = 4096    // bytes
	maxModels  = 64      // of a key
	maxName    = 256     // bytes of a model's name
)

// hashPrefix begins a key's hash, in hexadecimal, in place of the key.
const hashPrefix = "sha256:"

// Settings of a line, besides the names of Limits.
const (
	settingModels = "models"
	settingAdmin  = "admin"
)

// ErrName says that a key cannot have a name.
var ErrName = errors.New("the name is not 1 to 64 letters, digits, dots, hyphens, underscores and @")

// keyName matches names of keys, which go into logs and labels of metrics.
var keyName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// ReadKeys reads a file of keys, one a line: KEY, NAME KEY or NAME: KEY SETTING..., where
// sha256:HASH may stand for the key. What a line does not set is as in standard. Empty lines
// and those that begin with # are skipped. Its errors name lines and never show a key. A file
// without keys is an error: a server without keys is open to all.
func ReadKeys(path string, standard Limits) ([]Credential, error) {
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
	keys, err := parseKeys(string(bytes.TrimPrefix(text, []byte("\ufeff"))), standard)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

func parseKeys(text string, standard Limits) (list []Credential, err error) {
	names, hashes := map[string]int{}, map[[sha256.Size]byte]int{} // to their lines
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		c, err := parseKey(line, standard)
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", n, err)
		case c.Name != "" && names[c.Name] > 0:
			return nil, fmt.Errorf("line %d: the name %s is that of line %d", n, c.Name, names[c.Name])
		case hashes[c.Hash] > 0:
			return nil, fmt.Errorf("line %d: the key is that of line %d", n, hashes[c.Hash])
		case len(list) == maxKeys:
			return nil, fmt.Errorf("more than %d keys", maxKeys)
		}
		names[c.Name], hashes[c.Hash] = n, n
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("has no keys")
	}
	return list, nil
}

// parseKey reads a line. No bearer key has a colon (RFC 6750), so that the first one
// ends a name.
func parseKey(line string, standard Limits) (c Credential, err error) {
	words := strings.Fields(line)
	name, rest, named := strings.Cut(line, ":")
	settings := []string{}
	if named {
		if words = strings.Fields(rest); len(words) > 1 {
			words, settings = words[:1], words[1:]
		}
		words = append([]string{strings.TrimSpace(name)}, words...)
	} else if len(words) == 1 {
		words = []string{"", line}
	}
	if len(words) != 2 || strings.ContainsAny(words[0], " \t") {
		return c, errors.New("want KEY, or NAME: KEY")
	}
	key, hash := words[1], ""
	c = Credential{Name: words[0], Limits: standard}
	if named {
		hash, _ = strings.CutPrefix(key, hashPrefix)
	}
	switch {
	case c.Name == "" && strings.HasPrefix(line, ":"), c.Name != "" && !keyName.MatchString(c.Name):
		return c, ErrName
	case c.Name+":" == hashPrefix:
		return c, errors.New("a hash needs a name: NAME: " + hashPrefix + "HASH")
	case hash != key && named:
		sum, err := hex.DecodeString(hash)
		if err != nil || len(sum) != sha256.Size {
			return c, fmt.Errorf("the hash is not %s and %d hexadecimal digits", hashPrefix, 2*sha256.Size)
		}
		c.Hash = [sha256.Size]byte(sum)
	case len(key) > maxKey:
		return c, fmt.Errorf("the key has more than %d bytes", maxKey)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }):
		return c, errors.New("the key has characters that no bearer key has")
	default:
		c.Hash, c.Plain = sha256.Sum256([]byte(key)), true
	}
	given := map[string]bool{}
	for i, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		if given[name] {
			return c, fmt.Errorf("%s is set twice", name)
		}
		if err := c.set(name, value, s == settingAdmin); err != nil {
			return c, fmt.Errorf("setting %d: %w", i+1, err)
		}
		given[name] = true
	}
	return c, nil
}

// set sets what a word of a line says. Its errors show no value: in a line that is cut
// wrongly it may be the key.
func (c *Credential) set(name, value string, admin bool) (err error) {
	switch name {
	case settingAdmin:
		if c.Admin = admin; !admin {
			return errors.New("admin has no value")
		}
	case LimitRequests:
		c.Requests, err = count(name, value, MostRequests)
	case LimitTokens:
		c.Tokens, err = count(name, value, MostTokens)
	case LimitAtOnce:
		c.AtOnce, err = count(name, value, MostAtOnce)
	case settingModels:
		c.Models = strings.Split(value, ",")
		if len(c.Models) > maxModels {
			return fmt.Errorf("models: more than %d", maxModels)
		}
		for _, m := range c.Models {
			if m == "" || len(m) > maxName || strings.ContainsFunc(m, unicode.IsControl) {
				return fmt.Errorf("models: want names with commas between, of 1 to %d bytes", maxName)
			}
		}
	default:
		return fmt.Errorf("want %s, %s, %s, %s or %s", LimitRequests, LimitTokens, LimitAtOnce, settingModels, settingAdmin)
	}
	return err
}

// count reads a number from 0 to most.
func count(name, value string, most int64) (int, error) {
	n, err := strconv.ParseUint(value, 10, 63)
	if err != nil || int64(n) > most || int64(n) > math.MaxInt {
		return 0, fmt.Errorf("%s: want a number from 0 to %d", name, most)
	}
	return int(n), nil
}

// NewKey makes a random key of 130 bits, and c's line of a file with its hash. Nobody guesses such a key, so
// the hash needs neither salt nor rounds.
func NewKey(c Credential) (key, line string, err error) {
	key = "sk-lutra-" + rand.Text()
	sum := sha256.Sum256([]byte(key))
	line = c.Name + ": " + hashPrefix + hex.EncodeToString(sum[:])
	for _, l := range []struct {
		name string
		n    int
	}{{LimitRequests, c.Requests}, {LimitTokens, c.Tokens}, {LimitAtOnce, c.AtOnce}} {
		if l.n != 0 {
			line += fmt.Sprintf(" %s=%d", l.name, l.n)
		}
	}
	if len(c.Models) > 0 {
		line += " " + settingModels + "=" + strings.Join(c.Models, ",")
	}
	if c.Admin {
		line += " " + settingAdmin
	}
	if c.Name == "" {
		return "", "", ErrName
	}
	c.Hash = sum
	if got, err := parseKey(line, Limits{}); err != nil {
		return "", "", err
	} else if !reflect.DeepEqual(got, c) { // a model's name has a comma or a blank
		return "", "", errors.New("a model's name does not fit into a line")
	}
	return key, line, nil
}
