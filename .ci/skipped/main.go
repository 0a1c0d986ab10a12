// Command skipped reads what `go test -json` writes, prints what go test prints without
// it, and at the end how many tests were skipped and why.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// event is a line of `go test -json`, as `go doc test2json` describes it.
type event struct{ Action, Package, Test, Output string }

func main() {
	if err := read(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "skipped:", err)
		os.Exit(1)
	}
}

var reason = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)\n$`)

// read copies to w what r says of packages and of tests that failed, then the reasons for
// which tests were skipped.
func read(r io.Reader, w io.Writer) error {
	out := bufio.NewWriter(w)
	defer out.Flush()
	said := map[[2]string][]string{} // by package and test, until that ends
	skipped := map[string][]string{} // tests by reason
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if err == io.EOF && len(line) == 0 {
				break
			}
			return err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		test := [2]string{e.Package, e.Test}
		switch {
		case e.Action == "build-output", e.Action == "output" && e.Test == "":
			if e.Output != "PASS\n" {
				fmt.Fprint(out, e.Output)
			}
		case e.Action == "output":
			if !strings.HasPrefix(e.Output, "=== ") {
				said[test] = append(said[test], e.Output)
			}
		case e.Test == "" && e.Action == "fail": // also of tests that it took with it
			for _, of := range slices.SortedFunc(maps.Keys(said), func(a, b [2]string) int { return cmp.Compare(a[1], b[1]) }) {
				if of[0] == e.Package {
					fmt.Fprint(out, strings.Join(said[of], ""))
				}
			}
		case e.Action == "fail":
			fmt.Fprint(out, strings.Join(said[test], ""))
			delete(said, test)
		case e.Action == "skip" && e.Test != "":
			why := "without a reason"
			for _, text := range said[test] {
				if m := reason.FindStringSubmatch(text); m != nil {
					why = m[1]
				}
			}
			skipped[why] = append(skipped[why], e.Test)
			delete(said, test)
		case e.Action == "pass":
			delete(said, test)
		}
		out.Flush()
	}
	for _, why := range slices.Sorted(maps.Keys(skipped)) {
		tests := skipped[why]
		fmt.Fprintf(out, "skipped: %s: %s", why, tests[0])
		if n := len(tests) - 1; n > 0 {
			fmt.Fprintf(out, " and %d more", n)
		}
		fmt.Fprintln(out)
	}
	return nil
}
