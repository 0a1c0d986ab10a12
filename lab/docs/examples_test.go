package docs_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/cli"
	"github.com/lutra-lm/lutra/lab/commands"
)

// The examples of --help, README and docs are run as their readers would run
// them. This file finds them, examples_run_test.go runs shell commands,
// examples_languages_test.go other languages, examples_check_test.go compares the
// output, examples_tables_test.go holds substitutes for what this machine lacks.

// example is a command line, a block of code or a configuration.
type example struct {
	where string // "docs/api.md:83", "lutra ask --help"
	lang  string // of the block: sh, python, js, go, yaml, json, or none
	text  string
	shown string // what the document shows as its output, right below
}

const repository = "../.."

// documents are the texts of all Markdown files, by their paths in the repository.
func documents(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		paths, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(repository, path)
			if err != nil {
				t.Fatal(err)
			}
			docs[filepath.ToSlash(name)] = string(text)
		}
	}
	if len(docs) < 10 {
		t.Fatalf("%d documents: the test has lost sight of them", len(docs))
	}
	return docs
}

// blocks are the fenced blocks of a document. A block without a language, or of JSON,
// right below a command is the output of that command.
func blocks(name, text string) (list []example) {
	lines := strings.Split(text, "\n")
	last := -1 // line after the last block
	for i := 0; i < len(lines); i++ {
		lang, ok := strings.CutPrefix(lines[i], "```")
		if !ok {
			continue
		}
		begin := i + 1
		for i = begin; i < len(lines) && lines[i] != "```"; i++ {
		}
		body := strings.Join(lines[begin:i], "\n")
		apart := strings.TrimSpace(strings.Join(lines[max(0, last):begin-1], ""))
		if n := len(list); n > 0 && last >= 0 && apart == "" && (lang == "" || lang == "json") && list[n-1].lang == "sh" {
			list[n-1].shown = body
		} else {
			list = append(list, example{where: fmt.Sprintf("%s:%d", name, begin), lang: lang, text: body})
		}
		last = i + 1
	}
	return list
}

// allCommands returns the commands of both programs, but for the ones that only say where they went.
func allCommands() (list []*cobra.Command) {
	for _, root := range []*cobra.Command{cli.Command(io.Discard, io.Discard), commands.Command(io.Discard, io.Discard)} {
		list = append(list, commandsBelow(root)...)
	}
	return slices.DeleteFunc(list, func(c *cobra.Command) bool { return c.Hidden })
}

// commandsBelow walks the tree of commands.
func commandsBelow(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		all = append(all, commandsBelow(sub)...)
	}
	return all
}

// helpExamples are the lines under Examples: of every command, continued lines in one.
func helpExamples() (list []example) {
	for _, c := range allCommands() {
		for _, line := range strings.Split(strings.ReplaceAll(c.Example, "\\\n", ""), "\n") {
			if line = strings.TrimSpace(line); line != "" {
				list = append(list, example{where: c.CommandPath() + " --help", lang: "sh", text: line})
			}
		}
	}
	return list
}

// allExamples returns the examples of --help and of the documents.
func allExamples(t *testing.T) []example {
	list := helpExamples()
	docs := documents(t)
	for _, name := range sortedNames(docs) {
		list = append(list, blocks(name, docs[name])...)
	}
	return list
}

func sortedNames(docs map[string]string) []string {
	names := make([]string, 0, len(docs))
	for name := range docs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestEveryCommandHasAnExample(t *testing.T) {
	for _, c := range allCommands() {
		if c.Example == "" && !slices.Contains([]string{"help", "completion"}, c.Name()) {
			t.Errorf("%s shows no example", c.CommandPath())
		}
	}
}
