package settings

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/internal/usage"
)

// The decoder of a file sets the fields of its sections. It neither rounds nor guesses:
// a value must have its field's type, a key must be known and appear once. Faults name
// the key and the line.
//
// The library's own decoder reads 1.5 as 1 and yes as true, makes a text of the number 123,
// and leaves a setting without a value as it was. It does not say where a refused value stands.

// Bounds of a configuration file.
const (
	maxConfigFile = 1 << 20 // bytes
	maxConfigList = 1024    // elements of a list or a map
)

var (
	durationType  = reflect.TypeFor[time.Duration]()
	textUnmarshal = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// ReadYAML sets what text, a file called name, says.
func (s *Settings) ReadYAML(name string, text []byte) {
	s.file = name
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, next yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return // nothing but comments
	case err != nil:
		what := strings.TrimPrefix(err.Error(), "yaml: ")
		what = strings.Replace(what, "found character that cannot start any token", "a line cannot begin with a tab, nor a value with @ or a backtick; indent with spaces, and quote such values", 1)
		s.faults = append(s.faults, fmt.Errorf("%s:%s", name, strings.TrimPrefix(what, "line ")))
		return
	}
	if err := d.Decode(&next); !errors.Is(err, io.EOF) {
		s.faults = append(s.faults, fmt.Errorf("%s: more than one document", name))
		return
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		s.faultAt(root, "", "found %s, want sections such as server:", found(root))
		return
	}
	s.decode(s.into, root, "")
}

func (s *Settings) faultAt(n *yaml.Node, key, format string, args ...any) {
	if key != "" {
		format, args = "%s: "+format, append([]any{key}, args...)
	}
	s.faults = append(s.faults, fmt.Errorf("%s:%d: %w", s.file, n.Line, errtext.Keyed(fmt.Errorf(format, args...))))
}

// decode sets dst, the field of a key, to what n says.
func (s *Settings) decode(dst reflect.Value, n *yaml.Node, key string) {
	if key != "" {
		s.origin[key] = fmt.Sprintf("%s:%d", s.file, n.Line)
	}
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		s.faultAt(n, key, "anchors and aliases are not supported")
		return
	}
	if dst.Kind() == reflect.Pointer { // nil: the setting is not there
		dst.Set(reflect.New(dst.Type().Elem()))
		dst = dst.Elem()
	}
	if scalar(dst.Type()) || n.Kind == yaml.ScalarNode {
		s.decodeScalar(dst, n, key)
	} else {
		s.decodeTree(dst, n, key)
	}
}

// decodeTree reads sections, lists and maps.
func (s *Settings) decodeTree(dst reflect.Value, n *yaml.Node, key string) {
	want := map[reflect.Kind]yaml.Kind{reflect.Struct: yaml.MappingNode, reflect.Map: yaml.MappingNode, reflect.Slice: yaml.SequenceNode}
	if n.Kind != want[dst.Kind()] {
		s.faultAt(n, key, "found %s, want %s", found(n), wanted(dst.Type()))
		return
	}
	if n.Kind == yaml.SequenceNode && len(n.Content) > maxConfigList || len(n.Content) > 2*maxConfigList {
		s.faultAt(n, key, "more than %d entries", maxConfigList)
		return
	}
	switch dst.Kind() {
	case reflect.Slice:
		list := reflect.MakeSlice(dst.Type(), len(n.Content), len(n.Content))
		for i, e := range n.Content {
			s.decode(list.Index(i), e, fmt.Sprintf("%s[%d]", key, i))
		}
		dst.Set(list)
	case reflect.Map:
		m := reflect.MakeMap(dst.Type())
		s.eachPair(n, key, func(name string, k, v *yaml.Node) {
			e := reflect.New(dst.Type().Elem()).Elem()
			s.decode(e, v, joinKey(key, name))
			m.SetMapIndex(reflect.ValueOf(name), e)
		})
		dst.Set(m)
	case reflect.Struct:
		fields := Fields(dst)
		s.eachPair(n, key, func(name string, k, v *yaml.Node) {
			written := joinKey(key, name)
			if now := s.current(written, fmt.Sprintf("%s:%d", s.file, k.Line)); now != written {
				name = strings.TrimPrefix(now, key+".")
			}
			if from := s.origin[joinKey(key, name)]; strings.HasPrefix(from, s.file+":") {
				s.faultAt(k, written, "is set in %s already, under another name", from)
				return
			}
			i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
			if why, gone := s.names.Gone[written]; gone {
				s.Warnings = append(s.Warnings, fmt.Sprintf("%s:%d: %s has no effect: %s", s.file, k.Line, written, why))
				return
			}
			if i < 0 {
				var names []string
				for _, f := range fields {
					names = append(names, f.Name)
				}
				s.faultAt(k, "", "unknown key %q%s", joinKey(key, name), usage.DidYouMean(name, names))
				return
			}
			s.decode(fields[i].Value, v, joinKey(key, name))
		})
	}
}

// eachPair walks a mapping, whose keys must be text and appear once.
func (s *Settings) eachPair(n *yaml.Node, key string, do func(name string, k, v *yaml.Node)) {
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch first, twice := lines[k.Value]; {
		case k.Kind != yaml.ScalarNode || k.ShortTag() != "!!str" || k.Anchor != "":
			s.faultAt(k, key, "found %s for a key, want text%s", found(k), quoteHint(k))
		case twice:
			s.faultAt(k, joinKey(key, k.Value), "is set in line %d already", first)
		default:
			lines[k.Value] = k.Line
			do(k.Value, k, v)
		}
	}
}

// decodeScalar reads a single value.
func (s *Settings) decodeScalar(dst reflect.Value, n *yaml.Node, key string) {
	tag := n.ShortTag()
	switch {
	case n.Kind != yaml.ScalarNode || !scalar(dst.Type()) && tag != "!!null":
		s.faultAt(n, key, "found %s, want %s", found(n), wanted(dst.Type()))
	case dst.Kind() == reflect.Struct: // a section whose keys are all commented out
	case tag == "!!null":
		s.faultAt(n, key, "has no value, want %s", wanted(dst.Type()))
	case !slices.Contains(tagsFor(dst.Type()), tag):
		if dst.Type() == durationType && (tag == "!!int" || tag == "!!float") {
			s.faultAt(n, key, "%w", usage.NoUnit(n.Value))
			return
		}
		hint := ""
		if dst.Kind() == reflect.String {
			hint = quoteHint(n)
		}
		s.faultAt(n, key, "found %s, want %s%s", found(n), wanted(dst.Type()), hint)
	default:
		if err := setText(dst, n.Value); err != nil {
			s.faultAt(n, key, "%w", err)
		}
	}
}

// scalar reports whether a single value can set a type.
func scalar(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(textUnmarshal) || !slices.Contains([]reflect.Kind{reflect.Struct, reflect.Slice, reflect.Map}, t.Kind())
}

// tagsFor returns the kinds of YAML values that a type accepts. A type that reads text
// itself accepts any.
func tagsFor(t reflect.Type) []string {
	switch {
	case reflect.PointerTo(t).Implements(textUnmarshal):
		return []string{"!!str", "!!int", "!!float", "!!bool"}
	case t == durationType:
		return []string{"!!str"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return []string{"!!bool"}
	case reflect.Int, reflect.Int64:
		return []string{"!!int"}
	case reflect.Float32, reflect.Float64:
		return []string{"!!int", "!!float"}
	}
	return []string{"!!str"}
}

// setText sets a scalar from its text in a file, the environment or a flag.
func setText(dst reflect.Value, text string) (err error) {
	if u, ok := dst.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	bad := fmt.Errorf("found %q, want %s", usage.Brief(text), wanted(dst.Type()))
	if dst.Type() == durationType {
		d, err := time.ParseDuration(text)
		if _, number := strconv.ParseFloat(text, 64); err != nil && number == nil {
			return usage.NoUnit(text)
		}
		dst.SetInt(int64(d))
		return orBad(err, bad)
	}
	switch dst.Kind() {
	case reflect.String:
		dst.SetString(text)
	case reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(text)
		dst.SetBool(b)
	case reflect.Int, reflect.Int64:
		var i int64
		i, err = strconv.ParseInt(text, 10, dst.Type().Bits())
		dst.SetInt(i)
	case reflect.Float32, reflect.Float64:
		var f float64
		f, err = strconv.ParseFloat(text, dst.Type().Bits())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			err = bad
		}
		dst.SetFloat(f)
	default:
		panic(fmt.Sprintf("settings: a setting of type %v", dst.Type()))
	}
	return orBad(err, bad)
}

func orBad(err, bad error) error {
	if err != nil {
		return bad
	}
	return nil
}

// wanted describes the values of a type.
func wanted(t reflect.Type) string {
	if t == durationType {
		return usage.Duration
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list such as [a, b]"
	case reflect.Struct, reflect.Map:
		return "keys with values"
	}
	return "text"
}

// found describes a YAML value.
func found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "the number " + usage.Brief(n.Value)
	case "!!bool":
		return "the truth value " + usage.Brief(n.Value)
	case "!!timestamp":
		return "the date " + usage.Brief(n.Value)
	case "!!null":
		return "nothing"
	}
	return fmt.Sprintf("the text %q", usage.Brief(n.Value))
}

func quoteHint(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && n.Value != "" {
		return fmt.Sprintf("; put it in quotes: %q", usage.Brief(n.Value))
	}
	return ""
}

func joinKey(section, name string) string {
	if section == "" {
		return name
	}
	return section + "." + name
}

// Field is a setting of a section, or a section within one, with the last part of its key.
type Field struct {
	Name  string
	Value reflect.Value
}

// Fields returns the settings of a section, a struct, including the settings of embedded structs.
func Fields(v reflect.Value) (list []Field) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := f.Tag.Get("yaml")
		switch {
		case f.Anonymous:
			list = append(list, Fields(v.Field(i))...)
		case f.IsExported() && name != "" && name != "-":
			list = append(list, Field{name, v.Field(i)})
		}
	}
	return list
}

// Keys returns the settings of all sections of into, a pointer to a struct, by their keys.
func Keys(into any) map[string]reflect.Value { return leaves(reflect.ValueOf(into).Elem(), "") }

// leaves returns the settings below v, without the sections themselves, by their keys.
func leaves(v reflect.Value, section string) map[string]reflect.Value {
	all := map[string]reflect.Value{}
	for _, f := range Fields(v) {
		key := joinKey(section, f.Name)
		if f.Value.Kind() != reflect.Struct {
			all[key] = f.Value
			continue
		}
		for k, leaf := range leaves(f.Value, key) {
			all[k] = leaf
		}
	}
	return all
}
