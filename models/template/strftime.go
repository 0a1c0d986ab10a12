package template

import (
	"fmt"
	"strings"
	"time"
)

// layouts are the directives of C's strftime in terms of package time.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'd': "02", 'e': "_2", 'H': "15", 'I': "03", 'j': "002",
	'm': "01", 'M': "04", 'p': "PM", 'S': "05", 'y': "06", 'Y': "2006", 'z': "-0700", 'Z': "MST",
	'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06", 'R': "15:04", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
}

// strftime writes t by a format of C's strftime, in English. %-d leaves
// leading zeros out.
func strftime(t time.Time, format string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		bare := i < len(format) && format[i] == '-'
		if bare {
			i++
		}
		if i == len(format) {
			return "", fmt.Errorf("template: incomplete date format %.100q", format)
		}
		layout, ok := layouts[format[i]]
		var text string
		switch {
		case ok:
			text = t.Format(layout)
		case format[i] == 'f':
			text = fmt.Sprintf("%06d", t.Nanosecond()/1000)
		case format[i] == '%':
			text = "%"
		default:
			return "", fmt.Errorf("template: unknown date directive %%%c", format[i])
		}
		if bare {
			text = strings.TrimLeft(text[:len(text)-1], "0 ") + text[len(text)-1:]
		}
		b.WriteString(text)
	}
	return b.String(), nil
}
