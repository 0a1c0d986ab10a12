package choice

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/klauspost/cpuid/v2"

	"github.com/lutra-lm/lutra/kernels/cpu"
)

// Bounds of a file.
const (
	mostBytes   = 4 << 10
	mostChoices = 32
)

// choicePattern is a line of the file: whose choice, and what.
var choicePattern = regexp.MustCompile(`^([A-Za-z0-9]{1,16}) ([A-Za-z0-9:;_-]{1,512})$`)

var (
	mu      sync.Mutex
	file    string // empty: nothing is kept
	title   string // first line of a file of this build and processor
	choices map[string]string
)

// KeepIn has choices of build kept in the file path, and recalls those that are there.
//
// What the file says is only ever a name that is looked up among kernels that there are, all of which give the same
// bits. A file of another build or processor, or one that is damaged, counts as none. Without KeepIn nothing is read
// or written.
func KeepIn(path, build string) {
	mu.Lock()
	defer mu.Unlock()
	file, title, choices = path, titleOf(build), map[string]string{}
	if raw, err := read(path); err == nil {
		choices = parse(raw, title)
	}
}

// Forget has everything measured anew, and what is chosen then kept.
func Forget() {
	mu.Lock()
	defer mu.Unlock()
	clear(choices)
}

// titleOf names what choices depend on: the build, and the processor.
func titleOf(build string) string {
	c := cpuid.CPU
	text := fmt.Sprintf("%s on %s %s %d.%d.%d, %v", build, c.VendorString, c.BrandName, c.Family, c.Model, c.Stepping, cpu.Active())
	return strings.Join(strings.Fields(text), " ") // one line
}

// read returns what a small regular file holds.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostBytes {
		return nil, fmt.Errorf("%s: not a small file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	return io.ReadAll(io.LimitReader(f, mostBytes))
}

// parse returns the choices of a file with that title: none of any other.
func parse(raw []byte, title string) map[string]string {
	found := map[string]string{}
	first, rest, _ := strings.Cut(string(raw), "\n")
	if first != title {
		return found
	}
	for line := range strings.Lines(rest) {
		m := choicePattern.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil || len(found) == mostChoices {
			return map[string]string{}
		}
		found[m[1]] = m[2]
	}
	return found
}

// recall returns what name chose in an earlier run.
func recall(name string) (choice string, ok bool) {
	mu.Lock()
	defer mu.Unlock()
	choice, ok = choices[name]
	return choice, ok
}

// note keeps a choice for later runs. Where that fails they measure again.
func note(name, choice string) {
	mu.Lock()
	defer mu.Unlock()
	if file == "" || !choicePattern.MatchString(name+" "+choice) {
		return
	}
	choices[name] = choice
	var b bytes.Buffer
	fmt.Fprintln(&b, title)
	for name, choice := range choices {
		fmt.Fprintln(&b, name, choice)
	}
	_ = write(file, b.Bytes())
}

// write replaces a file as a whole.
func write(path string, raw []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
