package schema

import (
	"strings"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// format holds strings to a format. One that is not known matters only to strings.
func (c *compiler) format(name string) (ways, error) {
	text, ok := formats[name]
	if !ok {
		return one(func(s *shape) { s.formats = []string{name} }), nil
	}
	e, ok := c.formats[name]
	if !ok {
		var err error
		if e, err = c.arena.Match(text, c.spelt); err != nil {
			return nil, err
		}
		switch name {
		case "date", "date-time":
			leap, err := c.arena.Match(leapDay+".*", c.spelt)
			if err != nil {
				return nil, err
			}
			not, err := c.arena.Match(`\d{4}-02-29.*`, c.spelt)
			if err != nil {
				return nil, err
			}
			e = c.arena.And(e, c.arena.Or(leap, c.arena.And(c.arena.AnyText(c.spelt), c.arena.Not(not))))
		case "email":
			e = c.arena.And(e, c.arena.Texts(3, 254, c.spelt))
		case "hostname":
			e = c.arena.And(e, c.arena.Texts(1, 253, c.spelt))
		}
		c.formats[name] = e
	}
	return one(func(s *shape) { s.texts = []regex.Expr{e} }), nil
}

const (
	dateText = `\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|[12]\d))`
	leapDay  = `(\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29`
	timeText = `([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,12})?([zZ]|[+-]([01]\d|2[0-3]):[0-5]\d)`
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
	amounts    = `(T(\d+H(\d+M(\d+S)?)?|\d+M(\d+S)?|\d+S))`
)

// formats are patterns for whole texts.
var formats = map[string]string{
	"date":                  dateText,
	"time":                  timeText,
	"date-time":             dateText + `[tT]` + timeText,
	"duration":              `P((\d+Y(\d+M(\d+D)?)?|\d+M(\d+D)?|\d+D)` + amounts + `?|` + amounts + `|\d+W)`,
	"email":                 `(?=[^@]{1,64}@)` + atext + `+(\.` + atext + `+)*@(` + hostname + `|\[` + ipv4 + `\])`,
	"hostname":              hostname,
	"ipv4":                  ipv4,
	"ipv6":                  ipv6,
	"uuid":                  `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`,
	"uri":                   strings.ReplaceAll(absolute, "IPV6", ipv6),
	"uri-reference":         strings.ReplaceAll(`(`+absolute+`|`+relative+`)`, "IPV6", ipv6),
	"iri":                   wider(strings.ReplaceAll(absolute, "IPV6", ipv6)),
	"iri-reference":         wider(strings.ReplaceAll(`(`+absolute+`|`+relative+`)`, "IPV6", ipv6)),
	"uri-template":          `([^\x00-\x20\x7f"'<>\\^` + "`" + `{|}%]|` + escapedURI + `|\{[+#./;?&]?` + variable + `(,` + variable + `)*\})*`,
	"json-pointer":          pointer,
	"relative-json-pointer": `(0|[1-9]\d*)(#|` + pointer + `)`,
}

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
