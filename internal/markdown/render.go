// Package markdown shows at a terminal the Markdown that models write: parsed by goldmark as
// CommonMark with GitHub's tables, set in lines with ANSI's styles (ECMA-48, SGR).
//
//	pieces ─▶ Stream ─▶ finished blocks ─▶ Render ─▶ lines
//
// It fetches nothing, and no control character of the text is left in its lines.
package markdown

import (
	"fmt"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// The styles, as parameters of SGR.
const (
	bold   = "1"
	dim    = "2"
	italic = "3"
	title  = "1;4"
	code   = "36"
	struck = "9"
)

// mostNested bounds the blocks within blocks; what lies deeper stays as it is written.
const mostNested = 12

// leastColumns is the width below which nothing is set narrower.
const leastColumns = 16

var parser = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()

// Render returns Markdown as a terminal of so many columns shows it, without an end of line
// behind the last.
func Render(markdown string, columns int) string {
	source := []byte(markdown)
	s := setter{source: source}
	return strings.Join(s.blocks(parser.Parse(text.NewReader(source)), max(columns, leastColumns), 0), "\n")
}

// setter sets blocks in lines.
type setter struct{ source []byte }

// blocks sets the blocks in parent, an empty line between two unless it is a tight list's item.
func (s *setter) blocks(parent ast.Node, columns, depth int) (lines []string) {
	item, _ := parent.(*ast.ListItem)
	tight := item != nil && item.Parent().(*ast.List).IsTight
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if len(lines) > 0 && !tight {
			lines = append(lines, "")
		}
		lines = append(lines, s.block(n, columns, depth+1)...)
	}
	return lines
}

func (s *setter) block(n ast.Node, columns, depth int) []string {
	if depth > mostNested {
		return nil
	}
	columns = max(columns, leastColumns)
	switch n := n.(type) {
	case *ast.Heading:
		style := bold
		if n.Level == 1 {
			style = title
		}
		return wrapped(s.inline(n, style), columns)
	case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
		return s.verbatim(n)
	case *ast.List:
		return s.list(n, columns, depth)
	case *ast.Blockquote:
		return prefixed(s.blocks(n, columns-2, depth), styled(dim, "│ "), styled(dim, "│ "))
	case *ast.ThematicBreak:
		return []string{styled(dim, strings.Repeat("─", min(columns, 40)))}
	case *extast.Table:
		return s.table(n, columns)
	}
	if n.Type() == ast.TypeBlock && n.FirstChild() != nil && n.FirstChild().Type() == ast.TypeBlock {
		return s.blocks(n, columns, depth)
	}
	return wrapped(s.inline(n, ""), columns)
}

// verbatim sets lines of code. They are not wrapped: who copies them wants them whole.
func (s *setter) verbatim(n ast.Node) (lines []string) {
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		shown := string(clean(strings.TrimRight(string(line.Value(s.source)), "\r\n")))
		lines = append(lines, strings.TrimRight("    "+styled(code, shown), " "))
	}
	if len(lines) == 0 {
		lines = []string{""}
	}
	return lines
}

func (s *setter) list(n *ast.List, columns, depth int) (lines []string) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d%c ", number, n.Marker)
			number++
		}
		width := len([]rune(mark))
		if len(lines) > 0 && !n.IsTight {
			lines = append(lines, "")
		}
		inner := s.blocks(item, columns-width, depth)
		if len(inner) == 0 {
			inner = []string{""}
		}
		lines = append(lines, prefixed(inner, mark, strings.Repeat(" ", width))...)
	}
	return lines
}

// prefixed puts a text before the first of lines, and another before each further one.
func prefixed(lines []string, first, others string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		before := others
		if i == 0 {
			before = first
		}
		out[i] = strings.TrimRight(before+line, " ")
	}
	return out
}

// table sets rows of cells, which are wrapped where the columns of the terminal are few.
func (s *setter) table(n *extast.Table, columns int) (lines []string) {
	var rows [][][]cell
	var widths []int
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		style := ""
		if row.Kind() == extast.KindTableHeader {
			style = bold
		}
		var cells [][]cell
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			set := s.inline(c, style)
			if i := len(cells); i == len(widths) {
				widths = append(widths, 1)
			}
			widths[len(cells)] = max(widths[len(cells)], widthOf(set))
			cells = append(cells, set)
		}
		rows = append(rows, cells)
	}
	narrow(widths, columns-3*(len(widths)-1))
	for i, cells := range rows {
		lines = append(lines, tableRow(cells, widths)...)
		if i == 0 {
			rule := make([]string, len(widths))
			for j, w := range widths {
				rule[j] = strings.Repeat("─", w)
			}
			lines = append(lines, styled(dim, strings.Join(rule, "─┼─")))
		}
	}
	return lines
}

// narrow takes from the widest columns until they fit, or all are narrow.
func narrow(widths []int, room int) {
	const least = 6
	sum := 0
	for _, w := range widths {
		sum += w
	}
	for ; sum > room; sum-- {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= least {
			return
		}
		widths[widest]--
	}
}

func tableRow(cells [][]cell, widths []int) (lines []string) {
	set, height := make([][]string, len(widths)), 1
	for i, c := range cells[:min(len(cells), len(widths))] {
		set[i] = wrapped(c, widths[i])
		height = max(height, len(set[i]))
	}
	for at := range height {
		var b strings.Builder
		for i, w := range widths {
			if i > 0 {
				b.WriteString(styled(dim, " │ "))
			}
			line := ""
			if at < len(set[i]) {
				line = set[i][at]
			}
			b.WriteString(line)
			if i < len(widths)-1 {
				b.WriteString(strings.Repeat(" ", max(0, w-shownWidth(line))))
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}
