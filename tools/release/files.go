package main

import (
	"bytes"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/lutra-lm/lutra/internal/cli"
	"github.com/lutra-lm/lutra/lab/commands"
)

// file is what an archive or package holds.
type file struct {
	path string // with slashes, relative
	mode os.FileMode
	data []byte
}

// artifact is a file of the release.
type artifact struct {
	name string
	data []byte
}

// program is one of the commands that a release carries.
type program struct {
	name    string
	module  string // its folder in the checkout
	command func(out, errOut io.Writer) *cobra.Command
}

// lutra is what users install; its packages, wheels and image hold it alone. The laboratory's instruments
// would double their size, and have an archive of their own for each target.
var (
	lutra      = program{"lutra", ".", cli.Command}
	laboratory = program{"lutra-lab", "lab", commands.Command}
)

// bundle is what one target's archives and packages of a program are made of.
type bundle struct {
	source
	program
	target target
	binary []byte
	sbom   []byte
	common []file
}

// forms are what is made of each target.
var forms = []struct {
	fits func(target) bool
	pack func(bundle) ([]artifact, error)
}{
	{func(target) bool { return true }, archive},
	{func(t target) bool { return t.os == "linux" }, packages},
	{func(t target) bool { return t.os != "android" }, wheel},
	{func(t target) bool { return t.os != "android" }, npm},
}

// wholes are what is made of all targets together, and of what has been made of them.
var wholes = []func([]bundle, []artifact) ([]artifact, error){
	func(b []bundle, _ []artifact) ([]artifact, error) { return image(b) },
	func(b []bundle, _ []artifact) ([]artifact, error) { return umbrella(b) },
	recipes,
	installer,
}

// installer returns install.sh, which finds its archives by SHA256SUMS.
func installer(bundles []bundle, _ []artifact) ([]artifact, error) {
	data, err := os.ReadFile(filepath.Join(bundles[0].root, "deploy", "install.sh"))
	return []artifact{{"install.sh", data}}, err
}

// commonFiles returns what is the same for all targets: license, configuration, manual pages
// in man/, completion in completions/.
func commonFiles(s source, p program) ([]file, error) {
	var files []file
	for _, name := range []string{"LICENSE", "README.md", "config.yaml"} {
		data, err := os.ReadFile(filepath.Join(s.root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o644, data})
	}
	root := p.command(&bytes.Buffer{}, os.Stderr)
	pages, err := manPages(s, root)
	if err != nil {
		return nil, err
	}
	scripts, err := completion(root, p.name)
	return append(append(files, pages...), scripts...), err
}

// manPages returns a page in section 1 for each command.
func manPages(s source, root *cobra.Command) ([]file, error) {
	var files []file
	var add func(c *cobra.Command) error
	add = func(c *cobra.Command) error {
		c.DisableAutoGenTag = true
		var page bytes.Buffer
		header := doc.GenManHeader{Section: "1", Date: &s.time, Source: "Lutra " + s.version.String(), Manual: "Lutra"}
		if err := doc.GenMan(c, &header, &page); err != nil {
			return err
		}
		files = append(files, file{"man/" + strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1", 0o644, page.Bytes()})
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				if err := add(sub); err != nil {
					return err
				}
			}
		}
		return nil
	}
	root.InitDefaultCompletionCmd()
	return files, add(root)
}

// completion returns the scripts by which shells complete the words of a program of that name.
func completion(root *cobra.Command, name string) ([]file, error) {
	var files []file
	for _, shell := range []struct {
		name string
		gen  func(w *bytes.Buffer) error
	}{
		{name + ".bash", func(w *bytes.Buffer) error { return root.GenBashCompletionV2(w, true) }},
		{"_" + name, func(w *bytes.Buffer) error { return root.GenZshCompletion(w) }},
		{name + ".fish", func(w *bytes.Buffer) error { return root.GenFishCompletion(w, true) }},
		{name + ".ps1", func(w *bytes.Buffer) error { return root.GenPowerShellCompletionWithDesc(w) }},
	} {
		var script bytes.Buffer
		if err := shell.gen(&script); err != nil {
			return nil, err
		}
		files = append(files, file{path.Join("completions", shell.name), 0o644, script.Bytes()})
	}
	return files, nil
}
