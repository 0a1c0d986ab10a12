// Command english counts sentences that take two readings, in Markdown and in the comments of Go files: sentences
// over 30 words, cells of tables over 25, and turns of phrase that English has other words for. It compares the
// counts of each document and package with counts.txt, and fails where one has risen.
//
//	go run -C lab ./tools/english                  # compare; the gate's step vet does
//	go run -C lab ./tools/english -list docs/x.md  # what it finds in one document or package
//	go run -C lab ./tools/english -update          # record the counts of today
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	root := flag.String("root", "..", "the repository's `folder`")
	list := flag.String("list", "", "print what is found in this document or package")
	update := flag.Bool("update", false, "record the counts of today")
	flag.Parse()
	if err := run(os.Stdout, *root, *list, *update); err != nil {
		fmt.Fprintln(os.Stderr, "english:", err)
		os.Exit(1)
	}
}

const countsFile = "lab/tools/english/counts.txt"

func run(w io.Writer, root, list string, update bool) error {
	repository := os.DirFS(root)
	found, err := search(repository)
	if err != nil {
		return err
	}
	if list != "" {
		report(w, found[list])
		return nil
	}
	if update {
		return os.WriteFile(root+"/"+countsFile, []byte(format(found)), 0o644)
	}
	text, err := os.ReadFile(root + "/" + countsFile)
	if err != nil {
		return err
	}
	counts, err := parse(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", countsFile, err)
	}
	return compare(w, found, counts)
}

// compare reports the places where something is found more often than recorded.
func compare(w io.Writer, found map[string][]finding, counts map[string]tally) error {
	risen := 0
	for _, place := range slices.Sorted(maps.Keys(found)) {
		now := count(found[place])
		for kind, n := range now {
			if most := counts[place][kind]; n > most {
				risen++
				fmt.Fprintf(w, "%s: %d %s, recorded are %d:\n", place, n, kinds[kind], most)
				report(w, slices.DeleteFunc(slices.Clone(found[place]), func(f finding) bool { return f.kind != kind }))
			}
		}
	}
	if risen > 0 {
		return fmt.Errorf("%d counts have risen: say it in plain words and in shorter sentences", risen)
	}
	return nil
}

func report(w io.Writer, found []finding) {
	for _, f := range found {
		fmt.Fprintf(w, "  %s:%d: %s\n", f.file, f.line, f.text)
	}
}

// tally counts findings by kind.
type tally [len(kinds)]int

func count(found []finding) (n tally) {
	for _, f := range found {
		n[f.kind]++
	}
	return n
}

func format(found map[string][]finding) string {
	out := &strings.Builder{}
	fmt.Fprintf(out, "# document or package: %s. Written by go run -C lab ./tools/english -update\n", strings.Join(kinds[:], ", "))
	for _, place := range slices.Sorted(maps.Keys(found)) {
		n := count(found[place])
		fmt.Fprintf(out, "%s %d %d %d\n", place, n[longSentence], n[longCell], n[phrase])
	}
	return out.String()
}

func parse(text string) (map[string]tally, error) {
	counts := map[string]tally{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var place string
		var n tally
		if _, err := fmt.Sscanf(line, "%s %d %d %d\n", &place, &n[longSentence], &n[longCell], &n[phrase]); err != nil {
			return nil, fmt.Errorf("%q: %w", strings.TrimSpace(line), err)
		}
		counts[place] = n
	}
	return counts, nil
}

// byPlace groups findings, in the order of files and lines.
func byPlace(all []finding) map[string][]finding {
	slices.SortStableFunc(all, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	found := map[string][]finding{}
	for _, f := range all {
		found[f.place] = append(found[f.place], f)
	}
	return found
}
