// Package embedded holds the models that are built into the binary, so that it answers without any download. Two dense
// ternary generators and a mixture of experts solve short arithmetic stories step by step, and a process reward model
// judges such steps. They were trained from nothing; tools/train is the recipe, with measurements.
//
// The block matrices are stored as TQ1_0 (1.69 bits a weight), which holds them exactly and is the smallest form. If
// rows are no multiple of 256 they are I2_S (2 bits). The embedding is F16, the reward model's Q8_0, routers are F32.
// Together they add 5.9 MB to the binary.
package embedded

import (
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
)

// Role is the purpose of a model.
type Role string

// The roles.
const (
	Generator Role = "generator" // answers chats
	Reward    Role = "reward"    // scores solution steps: logits are one score a token
	Probe     Role = "probe"     // judges answers by the states of one of the generators
)

// Default is the model that chats unless another is chosen: the larger
// generator, right in one sample on 94 % of the held-out problems where the small
// one is on 92 %. The small one, with half the layers, needs voting or search
// for as many (docs/test-time-scaling-results.md).
const Default = "lutra-tiny-l"

// ErrUnknown says that no embedded model has that name.
var ErrUnknown = errors.New("embedded: no such model")

// Entry describes an embedded model.
type Entry struct {
	Name     string
	Role     Role
	Optional bool // loaded only where it is named
}

//go:embed lutra-tiny-s.gguf
var tinyS []byte

//go:embed lutra-tiny-l.gguf
var tinyL []byte

//go:embed lutra-tiny-moe.gguf
var tinyMoE []byte

//go:embed lutra-tiny-prm.gguf
var tinyPRM []byte

//go:embed lutra-tiny-s-probe.gguf
var probeS []byte

//go:embed lutra-tiny-l-probe.gguf
var probeL []byte

//go:embed test.jsonl
var testSet string

//go:embed profile.json
var profile []byte

//go:embed hard.jsonl.gz
var hardSet string

// entries are the models, the default first.
var entries = []struct {
	Entry
	data *[]byte
}{
	{Entry{Name: Default, Role: Generator}, &tinyL},
	{Entry{Name: "lutra-tiny-s", Role: Generator}, &tinyS},
	{Entry{Name: "lutra-tiny-moe", Role: Generator, Optional: true}, &tinyMoE},
	{Entry{Name: "lutra-tiny-prm", Role: Reward}, &tinyPRM},
}

// probes judge the generators' answers by their states.
var probes = []struct {
	Entry
	data *[]byte
}{
	{Entry{Name: "lutra-tiny-l-probe", Role: Probe}, &probeL},
	{Entry{Name: "lutra-tiny-s-probe", Role: Probe}, &probeS},
}

// Probes lists the embedded probes.
func Probes() []Entry {
	list := make([]Entry, len(probes))
	for i, e := range probes {
		list[i] = e.Entry
	}
	return list
}

// Models lists the embedded models, the default first.
func Models() []Entry {
	list := make([]Entry, len(entries))
	for i, e := range entries {
		list[i] = e.Entry
	}
	return list
}

// Open parses the embedded model of that name. Its tensors point into the
// binary: nothing is copied, and Close frees nothing.
func Open(name string) (*gguf.File, error) {
	data, err := Data(name)
	if err != nil {
		return nil, err
	}
	return gguf.Parse(data)
}

// Data returns the file of the embedded model or probe of that name, which nobody may change.
func Data(name string) ([]byte, error) {
	names := make([]string, len(entries))
	for i, e := range entries {
		if e.Name == name {
			return *e.data, nil
		}
		names[i] = e.Name
	}
	for _, e := range probes {
		if e.Name == name {
			return *e.data, nil
		}
	}
	return nil, fmt.Errorf("%w: %q (have %s)", ErrUnknown, name, strings.Join(names, ", "))
}

// TestSet returns 500 held-out problems, one JSON object a line. Its members are question, answer and steps (the lines of
// a right solution), eqs ([left, operator, right, result] of each), level (number of steps), hard (size of the operands,
// 1 or 2) and kind (the family of stories). No embedded model was trained on them.
func TestSet() string { return testSet }

// Profile returns what methods of test-time scaling reach and cost with the generators, in
// the format of tts/profile; its command has measured it on TestSet's first problems.
func Profile() []byte { return profile }

// HardSet returns 1,000 problems in the same form, with question, answer and level alone. They are chains of five
// and six steps, one more than any training problem has, with large operands, in sentences that the training data
// does not have (tools/train/hard.py).
func HardSet() string {
	r, err := gzip.NewReader(strings.NewReader(hardSet))
	if err != nil {
		panic(err) // it is embedded
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return string(text)
}
