// Package parts knows the names of models that lie in several files, as
// llama.cpp's gguf-split and the converters write them:
//
//	NAME-00001-of-00003.gguf NAME-00002-of-00003.gguf NAME-00003-of-00003.gguf
package parts

import (
	"fmt"
	"regexp"
	"strconv"
)

// Max bounds the parts of a model: ten times what the largest are cut into.
const Max = 1024

// Name is the name of a part, with or without a path.
type Name struct {
	Stem  string // what precedes the numbers
	No    int    // 1 to Count
	Count int    // at least 2
	ext   string // as it is written
}

var form = regexp.MustCompile(`(?i)^(.+)-(\d{5})-of-(\d{5})(\.gguf)$`)

// Parse reads a part's name; false: it is no part of several.
func Parse(file string) (Name, bool) {
	m := form.FindStringSubmatch(file)
	if m == nil {
		return Name{}, false
	}
	no, _ := strconv.Atoi(m[2]) // five digits
	count, _ := strconv.Atoi(m[3])
	return Name{m[1], no, count, m[4]}, count > 1 && no >= 1 && no <= count
}

// String writes n as Parse reads it.
func (n Name) String() string {
	return fmt.Sprintf("%s-%05d-of-%05d%s", n.Stem, n.No, n.Count, n.ext)
}

// Part returns the name of another part of the same model, the first being 1.
func (n Name) Part(no int) string {
	n.No = no
	return n.String()
}

// All returns the names of all parts, of the first Max at most.
func (n Name) All() []string {
	names := make([]string, min(n.Count, Max))
	for i := range names {
		names[i] = n.Part(i + 1)
	}
	return names
}

// First returns the name of a model's first part: the file itself where it is no part.
func First(file string) string {
	if n, ok := Parse(file); ok {
		return n.Part(1)
	}
	return file
}
