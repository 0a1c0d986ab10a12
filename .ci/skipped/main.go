// Command skipped reads what `go test -json` writes, prints what go test prints without
// it, and at the end how many tests were skipped and why, then what failed: who reads the end
// alone of a long log sees that.
//
//	skipped [FILE]
//
// FILE gets a line for each test that was skipped or walked a part, with what was left out:
// the word skip or part, the package, and the name of the test that go test -run knows. The file that
// LUTRA_RAN names grows by a line for each test: the word ran or skip, the package, the test.
// Where LUTRA_TESTS=all, no test may say that it waits for that.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
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
	left, ran, err := read(os.Stdin, os.Stdout, os.Getenv("LUTRA_TESTS") == "all")
	if err == nil && len(os.Args) > 1 {
		err = os.WriteFile(os.Args[1], []byte(strings.Join(left, "")), 0o600)
	}
	if name := os.Getenv("LUTRA_RAN"); err == nil && name != "" {
		err = add(name, strings.Join(ran, ""))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "skipped:", err)
		os.Exit(1)
	}
}

// add adds text to a file, at once: other steps of the gate add to it too.
func add(name, text string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// leftToFull is the reason with which internal/sweep.Full skips a test.
const leftToFull = "LUTRA_TESTS is not all"

var reason = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)\n$`)

// words begin the lines of the file that LUTRA_RAN names, by action.
var words = map[string]string{"pass": "ran", "fail": "ran", "skip": "skip"}

// walksAPart matches the lines of internal/sweep.Part.
var walksAPart = regexp.MustCompile(`^\s+\S+\.go:\d+: walks a part: `)

// read copies to w what r says of packages, then the reasons for which tests were skipped, and
// what tests said that failed. It returns the lines of FILE, sorted, and the lines that LUTRA_RAN's file gets.
// Where full is set, a test that was left to the full tests is an error.
func read(r io.Reader, w io.Writer, full bool) (left, ran []string, err error) {
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
			return nil, nil, err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", line, err)
		}
		test := [2]string{e.Package, e.Test}
		if word, ok := words[e.Action]; ok && e.Test != "" && !strings.Contains(e.Test, "/") {
			ran = append(ran, word+" "+e.Package+" "+e.Test+"\n")
		}
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
	if waits := skipped[leftToFull]; full && len(waits) > 0 {
		err = fmt.Errorf("%s, though it is: %v", leftToFull, waits)
	}
	return slices.Compact(left), ran, err
}
