package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	mdast "github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Kinds of findings.
const (
	longSentence = iota
	longCell
	phrase
)

var kinds = [...]string{longSentence: "sentences over 30 words", longCell: "cells over 25 words", phrase: "phrases to reword"}

const (
	sentenceWords = 30
	cellWords     = 25
)

// finding is one offence; place is its document or its package's folder.
type finding struct {
	place, file string
	line, kind  int
	text        string
}

// phrases are turns of phrase for which English has a noun or a plainer verb.
var phrases = regexp.MustCompile(`(?i)\b(what is what|those of|that of|by what|hears|lends)\b`)

// opening matches doc comments that say what a name is with a pronoun, in place of what it does.
var opening = regexp.MustCompile(`^(?:(?:A|An|The) )?[\w.]+ (?:is|are|was|were) (?:what|that|those|how)\b`)

// skipped lists folders of other people's texts; hidden ones but .ci are skipped too.
var skipped = []string{"node_modules", "libraries", "testdata"}

// search returns the findings of all documents and packages below root.
func search(root fs.FS) (map[string][]finding, error) {
	var all []finding
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			hidden := len(name) > 1 && entry.Name()[0] == '.' && name != ".ci"
			if hidden || slices.Contains(skipped, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		read := map[string]func(string, []byte) ([]finding, error){".md": document, ".go": source}[path.Ext(name)]
		if read == nil || name == "CHANGELOG.md" {
			return nil
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		found, err := read(name, data)
		all = append(all, found...)
		return err
	})
	return byPlace(all), err
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.Table)).Parser()

// document returns the findings of a Markdown file: paragraphs, items of lists and cells, without code.
func document(name string, data []byte) (found []finding, err error) {
	err = mdast.Walk(markdown.Parse(text.NewReader(data)), func(n mdast.Node, entering bool) (mdast.WalkStatus, error) {
		if !entering {
			return mdast.WalkContinue, nil
		}
		_, cell := n.(*extast.TableCell)
		_, paragraph := n.(*mdast.Paragraph)
		_, block := n.(*mdast.TextBlock)
		if !cell && !paragraph && !block {
			return mdast.WalkContinue, nil
		}
		said, at := plain(n, data)
		line := 1 + bytes.Count(data[:at], []byte("\n"))
		for _, f := range judge(said, cell) {
			f.place, f.file, f.line = name, name, line
			found = append(found, f)
		}
		return mdast.WalkSkipChildren, nil
	})
	return found, err
}

// plain returns the text below a node, where code is one word, and the offset at which it begins.
func plain(n mdast.Node, data []byte) (said string, at int) {
	out := &strings.Builder{}
	at = len(data)
	_ = mdast.Walk(n, func(n mdast.Node, entering bool) (mdast.WalkStatus, error) {
		switch n := n.(type) {
		case *mdast.CodeSpan:
			if entering {
				out.WriteString("code")
			}
			return mdast.WalkSkipChildren, nil
		case *mdast.Text:
			if entering {
				at = min(at, n.Segment.Start)
				out.Write(n.Segment.Value(data))
				if n.SoftLineBreak() {
					out.WriteByte(' ')
				}
			}
		}
		return mdast.WalkContinue, nil
	})
	return out.String(), min(at, len(data)-1)
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// source returns the findings of a Go file's comments.
func source(name string, data []byte) (found []finding, err error) {
	if generated.Match(data) {
		return nil, nil
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	add := func(at token.Pos, list []finding) {
		for _, f := range list {
			f.place, f.file, f.line = path.Dir(name), name, files.Position(at).Line
			found = append(found, f)
		}
	}
	for _, comment := range file.Comments {
		for paragraph := range strings.SplitSeq(prose(comment.Text()), "\n\n") {
			add(comment.Pos(), judge(paragraph, false))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		for _, doc := range docs(n) {
			if doc != nil && opening.MatchString(doc.Text()) {
				first, _, _ := strings.Cut(doc.Text(), "\n")
				add(doc.Pos(), []finding{{kind: phrase, text: first}})
			}
		}
		return true
	})
	return found, nil
}

// docs returns the doc comments of a declaration or a field.
func docs(n ast.Node) []*ast.CommentGroup {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return []*ast.CommentGroup{n.Doc}
	case *ast.GenDecl:
		return []*ast.CommentGroup{n.Doc}
	case *ast.TypeSpec:
		return []*ast.CommentGroup{n.Doc}
	case *ast.ValueSpec:
		return []*ast.CommentGroup{n.Doc}
	case *ast.Field:
		return []*ast.CommentGroup{n.Doc}
	}
	return nil
}

// prose returns a comment without drawings and code, which are indented, with each item of a list a paragraph.
func prose(comment string) string {
	out := &strings.Builder{}
	for line := range strings.Lines(comment) {
		switch {
		case strings.HasPrefix(line, "\t"), strings.HasPrefix(line, "   ") && !strings.HasPrefix(strings.TrimSpace(line), "- "):
			line = "\n"
		case strings.HasPrefix(strings.TrimSpace(line), "- "):
			line = "\n" + line
		}
		out.WriteString(line)
	}
	return out.String()
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?]["')\]]*(\s+|$)`)
	word        = regexp.MustCompile(`[\p{L}\p{N}]`)
)

// judge returns the findings of a paragraph or cell.
func judge(said string, cell bool) (found []finding) {
	said = strings.Join(strings.Fields(said), " ")
	if cell {
		if words(said) > cellWords {
			found = append(found, finding{kind: longCell, text: said})
		}
	} else {
		rest := said
		for rest != "" {
			end := len(rest)
			if at := sentenceEnd.FindStringIndex(rest); at != nil {
				end = at[1]
			}
			if words(rest[:end]) > sentenceWords {
				found = append(found, finding{kind: longSentence, text: rest[:end]})
			}
			rest = rest[end:]
		}
	}
	for _, at := range phrases.FindAllStringIndex(said, -1) {
		found = append(found, finding{kind: phrase, text: "…" + said[max(0, at[0]-30):min(len(said), at[1]+30)] + "…"})
	}
	return found
}

// words counts the words of a text: runs between spaces that have a letter or a digit.
func words(said string) (n int) {
	for w := range strings.FieldsSeq(said) {
		if word.MatchString(w) {
			n++
		}
	}
	return n
}
