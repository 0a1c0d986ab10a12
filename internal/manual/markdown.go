package manual

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// markdown is GitHub's. Alignment is an attribute, since the site's policy forbids styles in pages.
var markdown = goldmark.New(goldmark.WithExtensions(
	extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
	extension.Strikethrough, extension.Linkify))

// document is a parsed file of Markdown.
type document struct {
	name     string // in the repository
	title    string
	body     template.HTML
	sections []section
}

// section is a heading and the text up to the next one.
type section struct {
	level                 int
	anchor, heading, text string
	names                 []string // that its tables explain
}

// parse reads a document. Links to other files lead where resolve says.
func parse(name string, source []byte, resolve func(from, to string) (string, error)) (*document, error) {
	root := markdown.Parser().Parse(text.NewReader(source))
	d := &document{name: name}
	if err := relink(root, source, func(to string) (string, error) { return resolve(name, to) }); err != nil {
		return nil, err
	}
	d.divide(root, source)
	if len(d.sections) == 0 || d.sections[0].level != 1 {
		return nil, errors.New("it does not begin with a title")
	}
	d.title = d.sections[0].heading
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, root); err != nil {
		return nil, err
	}
	d.body = template.HTML(out.String()) // goldmark escapes, and has let no HTML through
	return d, nil
}

// relink rewrites the links and pictures below a node, and takes comments out.
func relink(root ast.Node, source []byte, resolve func(to string) (string, error)) error {
	var comments []ast.Node
	err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var to *[]byte
		switch n := n.(type) {
		case *ast.Link:
			to = &n.Destination
		case *ast.Image:
			to = &n.Destination
		case *ast.RawHTML:
			return ast.WalkStop, fmt.Errorf("HTML in Markdown: %s", n.Segments.Value(source))
		case *ast.HTMLBlock:
			if n.HTMLBlockType != ast.HTMLBlockType2 {
				return ast.WalkStop, fmt.Errorf("HTML in Markdown: %s", n.Lines().Value(source))
			}
			comments = append(comments, n)
		}
		if to == nil || strings.Contains(string(*to), "://") {
			return ast.WalkContinue, nil
		}
		address, err := resolve(string(*to))
		*to = []byte(address)
		return ast.WalkContinue, err
	})
	for _, n := range comments {
		n.Parent().RemoveChild(n.Parent(), n)
	}
	return err
}

// divide finds the sections, and gives each heading its anchor with a link to it.
func (d *document) divide(root ast.Node, source []byte) {
	used := map[string]int{}
	var said strings.Builder
	end := func() {
		if len(d.sections) > 0 {
			d.sections[len(d.sections)-1].text = strings.Join(strings.Fields(said.String()), " ")
		}
		said.Reset()
	}
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok {
			write(&said, n, source)
			if t, ok := n.(*extast.Table); ok && len(d.sections) > 0 {
				last := &d.sections[len(d.sections)-1]
				last.names = append(last.names, firstColumn(t, source)...)
			}
			continue
		}
		end()
		var heading strings.Builder
		write(&heading, h, source)
		s := section{level: h.Level, heading: strings.TrimSpace(heading.String())}
		s.anchor = slug(s.heading, used)
		d.sections = append(d.sections, s)
		h.SetAttributeString("id", []byte(s.anchor))
		if h.Level > 1 {
			link := ast.NewLink()
			link.Destination = []byte("#" + s.anchor)
			link.SetAttributeString("class", []byte("anchor"))
			link.SetAttributeString("aria-label", []byte("This section"))
			link.AppendChild(link, ast.NewString([]byte("#")))
			h.AppendChild(h, link)
		}
	}
	end()
}

// firstColumn returns what the rows of a table are about: fields, settings, flags, questions.
func firstColumn(t *extast.Table, source []byte) (names []string) {
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		var cell strings.Builder
		if _, ok := row.(*extast.TableRow); ok && row.FirstChild() != nil {
			write(&cell, row.FirstChild(), source)
			names = append(names, strings.TrimSpace(cell.String()))
		}
	}
	return names
}

// write appends the text of a node without its markup.
func write(to *strings.Builder, node ast.Node, source []byte) {
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				to.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					to.WriteByte(' ')
				}
			}
		case *ast.AutoLink:
			if entering {
				to.Write(n.Label(source))
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				to.Write(n.Lines().Value(source))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock { // cells of a table, lines of a list
				to.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
}

// slug returns the anchor that GitHub gives a heading; used counts the document's anchors so far.
func slug(heading string, used map[string]int) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
	n := used[s]
	used[s]++
	if n > 0 {
		s += "-" + strconv.Itoa(n)
	}
	return s
}
