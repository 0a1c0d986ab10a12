package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// format holds strings to a format. One that nobody knows is an annotation, as the
// standard says.
func (c *solver) format(name string) (alternatives, error) {
	text, ok := formats[name]
	if !ok {
		return alternatives{anything()}, nil
	}
	e, ok := c.formats[name]
	if !ok {
		var err error
		if e, err = c.arena.Match(text, c.quoting); err != nil {
			return nil, err
		}
		switch name {
		case "date", "date-time":
			leap, err := c.arena.Match(leapDay+".*", c.quoting)
			if err != nil {
				return nil, err
			}
			not, err := c.arena.Match(`\d{4}-02-29.*`, c.quoting)
			if err != nil {
				return nil, err
			}
			e = c.arena.And(e, c.arena.Or(leap, c.arena.And(c.arena.AnyText(c.quoting), c.arena.Not(not))))
		case "email":
			e = c.arena.And(e, c.arena.Texts(3, 254, c.quoting))
		case "hostname":
			e = c.arena.And(e, c.arena.Texts(1, 253, c.quoting))
		}
		c.formats[name] = e
	}
	return one(func(s *shape) { s.texts = []regex.Expr{e} }), nil
}

// Dates and times are limited to the values that programs read, which are fewer than RFC 3339 has. Python's datetime knows
// no year 0, Go's time.Time no lower-case t and z, and pydantic's durations have at most 999,999,999 days.
const (
	dateText = `(\d{3}[1-9]|\d\d[1-9]\d|\d[1-9]\d\d|[1-9]\d{3})-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|[12]\d))`
	leapDay  = `(\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29`
	timeText = `([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)`
	octet    = `(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	ipv4     = `(` + octet + `\.){3}` + octet
	alnum    = `[a-zA-Z0-9]`
	inLabel  = `[a-zA-Z0-9-]`
	label    = alnum + `(` + alnum + `|` + inLabel + alnum + `|` + inLabel + `{2}` + alnum + `|` + inLabel + `(` + alnum + inLabel + `|-` + alnum + `)` + inLabel + `{0,58}` + alnum + `)?` // -- is no third and fourth character
	hostname = label + `(\.` + label + `)*`
	atext    = "[a-zA-Z0-9!#$%&'*+\\-/=?^_`{|}~]"
	h16      = `[0-9a-fA-F]{1,4}`

	unreserved = `[a-zA-Z0-9._~!$&'()*+,;=-]`
	escapedURI = `%[0-9a-fA-F]{2}`
	pathChar   = `([a-zA-Z0-9._~!$&'()*+,;=:@-]|` + escapedURI + `)`
	segments   = `(/` + pathChar + `*)*`
	queryPart  = `(\?([a-zA-Z0-9._~!$&'()*+,;=:@/?-]|` + escapedURI + `)*)?(#([a-zA-Z0-9._~!$&'()*+,;=:@/?-]|` + escapedURI + `)*)?`
	authority  = `(([a-zA-Z0-9._~!$&'()*+,;=:-]|` + escapedURI + `)*@)?(\[(IPV6|v[0-9a-fA-F]+\.[a-zA-Z0-9._~!$&'()*+,;=:-]+)\]|(` + unreserved + `|` + escapedURI + `)*)(:\d*)?`
	absolute   = `[a-zA-Z][a-zA-Z0-9+.-]*:(//` + authority + segments + `|/(` + pathChar + `+` + segments + `)?|` + pathChar + `+` + segments + `)?` + queryPart
	relative   = `(//` + authority + segments + `|/(` + pathChar + `+` + segments + `)?|([a-zA-Z0-9._~!$&'()*+,;=@-]|` + escapedURI + `)+` + segments + `)?` + queryPart
	pointer    = `(/([^~/]|~[01])*)*`
	amount     = `\d{1,6}`
	amounts    = `(T(` + amount + `H(` + amount + `M(` + amount + `S)?)?|` + amount + `M(` + amount + `S)?|` + amount + `S))`
)

// unformatted returns the strings that certainly do not have a format. Formats are held to
// more narrowly than they are defined, so that the complement of what is written would
// hold some that have it.
func (c *solver) unformatted(name string) (alternatives, error) {
	if _, ok := formats[name]; !ok {
		return nil, nil
	}
	text, ok := looks[name]
	if !ok {
		return nil, fmt.Errorf("the complement of format %q is not supported", name)
	}
	e, err := c.arena.Match(text, c.quoting)
	return only(strs, func(s *shape) { s.texts = []regex.Expr{c.arena.Not(e)} }), err
}

// looks are patterns that all texts of a format match, and others may.
var looks = map[string]string{
	"date": `\d{4}-\d\d-\d\d`, "time": `\d\d:\d\d:\d\d[^ ]*`, "date-time": `\d{4}-\d\d-\d\d[tT ]\d\d:[^]*`, "duration": `P[0-9A-Za-z.,]*`,
	"email": `[^]*@[^]*`, "hostname": `[a-zA-Z0-9_.-]*`, "ipv4": `\d+\.\d+\.\d+\.\d+`, "ipv6": `[^:]*:[^:]*:[^]*`, "ipvanyaddress": `\d+\.\d+\.\d+\.\d+|[^:]*:[^:]*:[^]*`,
	"uuid": `[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}`,
	"uri":  `[a-zA-Z][a-zA-Z0-9+.-]*:[^]*`, "iri": `[a-zA-Z][a-zA-Z0-9+.-]*:[^]*`, "url": `[a-zA-Z][a-zA-Z0-9+.-]*:[^]*`,
	"json-pointer": `(/[^]*)?`, "relative-json-pointer": `\d+[^]*`, "base64": `[A-Za-z0-9+/=]*`,
}

// meanings are formats that change nothing of how a string is written, or that say how
// a number is kept.
var meanings = []string{"path", "file-path", "directory-path", "password", "binary", "byte", "int32", "int64", "float", "double"}

// Unheld lists the formats that the keywords of a schema name and that answers are not
// held to, since they are not known: annotations to the standard. It is nil if the text
// is no JSON.
func Unheld(text []byte) []string {
	root, err := read(text)
	if err != nil {
		return nil
	}
	var names []string
	var look func(v *value)
	look = func(v *value) {
		for _, m := range v.members {
			if m.name == "format" && m.value.kind == strs && formats[m.value.text] == "" && !slices.Contains(meanings, m.value.text) && !slices.Contains(names, m.value.text) {
				names = append(names, m.value.text)
			}
			for _, s := range holds[m.name].within(m.value) {
				look(s)
			}
		}
	}
	look(root)
	return names
}

// formats are patterns for whole texts.
var formats = map[string]string{
	"date":                  dateText,
	"time":                  timeText,
	"date-time":             dateText + `T` + timeText,
	"duration":              `P((` + amount + `Y(` + amount + `M(` + amount + `D)?)?|` + amount + `M(` + amount + `D)?|` + amount + `D)` + amounts + `?|` + amounts + `|` + amount + `W)`,
	"email":                 `(?=[^@]{1,64}@)` + atext + `+(\.` + atext + `+)*@(` + hostname + `|\[` + ipv4 + `\])`,
	"hostname":              hostname,
	"ipv4":                  ipv4,
	"ipv6":                  ipv6,
	"uuid":                  uuid(`[0-9a-fA-F]`, `[0-9a-fA-F]`),
	"uri":                   strings.ReplaceAll(absolute, "IPV6", ipv6),
	"uri-reference":         strings.ReplaceAll(`(`+absolute+`|`+relative+`)`, "IPV6", ipv6),
	"iri":                   wider(strings.ReplaceAll(absolute, "IPV6", ipv6)),
	"iri-reference":         wider(strings.ReplaceAll(`(`+absolute+`|`+relative+`)`, "IPV6", ipv6)),
	"uri-template":          `([^\x00-\x20\x7f"'<>\\^` + "`" + `{|}%]|` + escapedURI + `|\{[+#./;?&]?` + variable + `(,` + variable + `)*\})*`,
	"json-pointer":          pointer,
	"relative-json-pointer": `(0|[1-9]\d*)(#|` + pointer + `)`,

	// The formats of pydantic, OpenAPI and others.
	"url":           strings.ReplaceAll(absolute, "IPV6", ipv6),
	"ipvanyaddress": `(` + ipv4 + `|` + ipv6 + `)`,
	"base64":        base64,
	"regex":         pattern3,
	"semver":        semver,
	"uuid1":         uuid("1", `[89abAB]`),
	"uuid3":         uuid("3", `[89abAB]`),
	"uuid4":         uuid("4", `[89abAB]`),
	"uuid5":         uuid("5", `[89abAB]`),
	"uuid6":         uuid("6", `[89abAB]`),
	"uuid7":         uuid("7", `[89abAB]`),
	"uuid8":         uuid("8", `[89abAB]`),
}

func uuid(version, variant string) string {
	return `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-` + version + `[0-9a-fA-F]{3}-` + variant + `[0-9a-fA-F]{3}-[0-9a-fA-F]{12}`
}

const (
	preRelease = `(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)`
	semver     = `(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-` + preRelease + `(\.` + preRelease + `)*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?`
)

const base64 = `([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?`

// Patterns whose groups are nested up to three deep: no regular expression describes
// all of them.
const (
	patternEscape = `\\[dDwWsStnrfv.*+?^$(){}\[\]|/\\]`
	patternClass  = `\[\^?(a-z|A-Z|0-9|[^\[\]\\^-]|` + patternEscape + `)+-?\]`
	patternOften  = `([*+?]\??|\{(\d{1,3},?|0,\d|1,[1-9]|2,[2-9]|3,[3-9]|4,[4-9]|5,[5-9]|6,[6-9]|[78],[89]|9,9|\d,[1-9]\d\d?|[1-9]\d,[1-9]\d\d)\})?`
	patternAtom   = `[^\\()\[\]{}*+?|^$]|` + patternEscape + `|` + patternClass
	pattern0      = `(((` + patternAtom + `)` + patternOften + `|[\^$|])*)`
	pattern1      = `(((` + patternAtom + `|\((\?:)?` + pattern0 + `\))` + patternOften + `|[\^$|])*)`
	pattern2      = `(((` + patternAtom + `|\((\?:)?` + pattern1 + `\))` + patternOften + `|[\^$|])*)`
	pattern3      = `(((` + patternAtom + `|\((\?:)?` + pattern2 + `\))` + patternOften + `|[\^$|])*)`
)

const variable = `[a-zA-Z0-9_](\.?[a-zA-Z0-9_])*(\*|:[1-9]\d{0,3})?`

// wider lets letters of all scripts stand in a URI.
func wider(uri string) string {
	return strings.ReplaceAll(uri, `._~!`, `._~\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef!`)
}

var ipv6 = func() string {
	ls32 := `(` + h16 + `:` + h16 + `|` + ipv4 + `)`
	n := func(k string) string { return `(` + h16 + `:){` + k + `}` }
	return `(` + strings.Join([]string{
		n("6") + ls32, `::` + n("5") + ls32, `(` + h16 + `)?::` + n("4") + ls32, `(` + n("0,1") + h16 + `)?::` + n("3") + ls32, `(` + n("0,2") + h16 + `)?::` + n("2") + ls32,
		`(` + n("0,3") + h16 + `)?::` + n("1") + ls32, `(` + n("0,4") + h16 + `)?::` + ls32, `(` + n("0,5") + h16 + `)?::` + h16, `(` + n("0,6") + h16 + `)?::`,
	}, `|`) + `)`
}()
