// Command skipped reads what `go test -json` writes, prints what go test prints without
// it, and at the end how many tests were skipped and why, then what failed: who reads the end
// alone of a long log sees that.
//
//	skipped [FILE]
//
// FILE gets a line for each test that was skipped or walked a part, with what was left out:
// the word skip or part, the package, and the name of the test that go test -run knows.
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
	left, err := read(os.Stdin, os.Stdout)
	if err == nil && len(os.Args) > 1 {
		err = os.WriteFile(os.Args[1], []byte(strings.Join(left, "")), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "skipped:", err)
		os.Exit(1)
	}
}

var reason = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)\n$`)

// walksAPart matches the lines of internal/sweep.Part.
var walksAPart = regexp.MustCompile(`^\s+\S+\.go:\d+: walks a part: `)

// read copies to w what r says of packages, then the reasons for which tests were skipped, and
// what tests said that failed. It returns the lines of FILE, sorted.
func read(r io.Reader, w io.Writer) (left []string, err error) {
	out := bufio.NewWriter(w)
	defer out.Flush()
	said := map[[2]string][]string{} // by package and test, or "", until that ends
	var failed []string
	skipped := map[string][]string{} // tests by reason
	leaves := func(how string, e event) {
		name, _, _ := strings.Cut(e.Test, "/")
		left = append(left, how+" "+e.Package+" "+name+"\n")
	}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if err == io.EOF && len(line) == 0 {
				break
			}
			return nil, err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		test := [2]string{e.Package, e.Test}
		switch {
		case e.Action == "build-output":
			failed = append(failed, e.Output)
		case e.Action == "output":
			if walksAPart.MatchString(e.Output) {
				leaves("part", e)
			} else if !strings.HasPrefix(e.Output, "=== ") && e.Output != "PASS\n" {
				said[test] = append(said[test], e.Output)
			}
		case e.Test == "" && e.Action == "fail": // also of tests that it took with it
			for _, of := range slices.SortedFunc(maps.Keys(said), func(a, b [2]string) int { return cmp.Compare(a[1], b[1]) }) {
				if of[0] == e.Package {
					failed = append(failed, said[of]...)
				}
			}
		case e.Action == "fail":
			failed = append(failed, said[test]...)
			delete(said, test)
		case e.Action == "skip" && e.Test != "":
			why := "without a reason"
			for _, text := range said[test] {
				if m := reason.FindStringSubmatch(text); m != nil {
					why = m[1]
				}
			}
			skipped[why] = append(skipped[why], e.Test)
			leaves("skip", e)
			delete(said, test)
		case e.Action == "pass", e.Action == "skip":
			if e.Test == "" {
				fmt.Fprint(out, strings.Join(said[test], ""))
			}
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
	fmt.Fprint(out, strings.Join(failed, ""))
	slices.Sort(left)
	return slices.Compact(left), nil
}
