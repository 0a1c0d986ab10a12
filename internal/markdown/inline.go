package markdown

import (
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

// cell is a character with its style. '\n' ends a line.
type cell struct {
	r     rune
	style string
}

// styled returns text in a style.
func styled(style, text string) string {
	if style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// clean returns the characters of a text that a terminal may see.
func clean(text string) []rune {
	text = strings.ReplaceAll(text, "\t", "    ")
	return []rune(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return -1
		}
		return r
	}, text))
}

func cells(text, style string) (list []cell) {
	for _, r := range clean(text) {
		list = append(list, cell{r, style})
	}
	return list
}

// with adds a style to another.
func with(style, more string) string {
	if style == "" {
		return more
	}
	return style + ";" + more
}

// inline returns what stands in parent, in a style.
func (s *setter) inline(parent ast.Node, style string) (list []cell) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			value := n.Segment.Value(s.source)
			if !n.IsRaw() {
				value = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(value)))
			}
			list = append(list, cells(string(value), style)...)
			if n.SoftLineBreak() || n.HardLineBreak() {
				list = append(list, cell{'\n', ""}) // models mean the lines that they write
			}
		case *ast.String:
			list = append(list, cells(string(n.Value), style)...)
		case *ast.CodeSpan:
			list = append(list, s.inline(n, with(style, code))...)
		case *ast.Emphasis:
			list = append(list, s.emphasis(n, style)...)
		case *extast.Strikethrough:
			list = append(list, s.inline(n, with(style, struck))...)
		case *extast.TaskCheckBox:
			box := "[ ] "
			if n.IsChecked {
				box = "[x] "
			}
			list = append(list, cells(box, style)...)
		case *ast.Link:
			list = append(list, s.target(s.inline(n, style), string(n.Destination))...)
		case *ast.Image:
			list = append(list, s.target(s.inline(n, style), string(n.Destination))...)
		case *ast.AutoLink:
			list = append(list, cells(string(n.URL(s.source)), style)...)
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				part := n.Segments.At(i)
				list = append(list, cells(string(part.Value(s.source)), style)...)
			}
		default:
			list = append(list, s.inline(n, style)...)
		}
	}
	return list
}

// target puts the address of a link behind its text, unless that is the address.
func (s *setter) target(text []cell, address string) []cell {
	var said strings.Builder
	for _, c := range text {
		said.WriteRune(c.r)
	}
	if said.String() == address {
		return text
	}
	return append(text, cells(" ("+address+")", dim)...)
}

// emphasis sets what stands between marks. Between two words or numbers, as in 2*3*4, they are
// signs of multiplication.
func (s *setter) emphasis(n *ast.Emphasis, style string) []cell {
	more := italic
	if n.Level == 2 {
		more = bold
	}
	first, ok := n.FirstChild().(*ast.Text)
	if !ok {
		return s.inline(n, with(style, more))
	}
	at := first.Segment.Start - n.Level
	if at < 1 || s.source[at] != '*' || !isWord(s.source[at-1]) {
		return s.inline(n, with(style, more))
	}
	mark := cells(strings.Repeat("*", n.Level), style)
	list := append(append([]cell{}, mark...), s.inline(n, style)...)
	return append(list, mark...)
}

func isWord(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == ')' || b >= 0x80
}

func widthOf(line []cell) (n int) {
	widest := 0
	for _, c := range line {
		if c.r == '\n' {
			n = 0
			continue
		}
		n += runewidth.RuneWidth(c.r)
		widest = max(widest, n)
	}
	return widest
}

// wrapped divides cells into lines of so many columns, at spaces where there are some.
func wrapped(list []cell, columns int) (lines []string) {
	for len(list) > 0 {
		end, next := lineEnd(list, columns)
		lines = append(lines, lineOf(list[:end]))
		list = list[next:]
	}
	if len(lines) == 0 {
		lines = []string{""}
	}
	return lines
}

// lineEnd returns how many cells the first line has, and where the next one begins.
func lineEnd(list []cell, columns int) (end, next int) {
	width, space := 0, -1
	for i, c := range list {
		if c.r == '\n' {
			return i, i + 1
		}
		if width += runewidth.RuneWidth(c.r); width > columns && c.r != ' ' {
			if space > 0 {
				return space, space + 1
			}
			return max(i, 1), max(i, 1)
		}
		if c.r == ' ' {
			space = i
		}
	}
	return len(list), len(list)
}

func lineOf(list []cell) string {
	for len(list) > 0 && list[len(list)-1].r == ' ' {
		list = list[:len(list)-1]
	}
	var b strings.Builder
	for from := 0; from < len(list); {
		to := from
		var part strings.Builder
		for ; to < len(list) && list[to].style == list[from].style; to++ {
			part.WriteRune(list[to].r)
		}
		b.WriteString(styled(list[from].style, part.String()))
		from = to
	}
	return b.String()
}

// shownWidth returns the columns that a line with styles takes.
func shownWidth(line string) (n int) {
	inStyle := false
	for _, r := range line {
		switch {
		case r == '\x1b':
			inStyle = true
		case inStyle:
			inStyle = r != 'm'
		default:
			n += runewidth.RuneWidth(r)
		}
	}
	return n
}
