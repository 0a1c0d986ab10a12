package embedded

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

func TestEveryEmbeddedModelParsesAndIsTernary(t *testing.T) {
	layers := map[string]int{"lutra-tiny-s": 3, "lutra-tiny-l": 6, "lutra-tiny-moe": 3, "lutra-tiny-prm": 5}
	total := 0
	for i, e := range Models() {
		total += len(*entries[i].data)
		f, err := Open(e.Name)
		if err != nil {
			t.Fatalf("Open(%s) = %v", e.Name, err)
		}
		if arch, _ := f.Metadata.String("general.architecture"); arch != "llama" {
			t.Errorf("%s: architecture %q, want llama", e.Name, arch)
		}
		if n, _ := f.Metadata.Int("llama.block_count"); n != layers[e.Name] {
			t.Errorf("%s: %d layers, want %d", e.Name, n, layers[e.Name])
		}
		for i := range f.Tensors {
			x := &f.Tensors[i]
			want := gguf.TQ1_0
			if x.Dims[0]%256 != 0 { // the rows that its blocks of 256 cannot hold
				want = gguf.I2_S
			}
			if strings.HasSuffix(x.Name, "ffn_gate_inp.weight") {
				want = gguf.F32 // routers are as they were trained
			}
			if len(x.Dims) > 1 && strings.HasPrefix(x.Name, "blk.") && x.Type != want {
				t.Errorf("%s: %s is stored as %v, want %v", e.Name, x.Name, x.Type, want)
			}
			if err := x.Dequantize(make([]float32, x.Len()), 0); err != nil {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
		if has := f.Tensor("cls.output.weight") != nil; has != (e.Role == Reward) {
			t.Errorf("%s: has a score head: %t, its role is %s", e.Name, has, e.Role)
		}
	}
	if len(layers) != len(Models()) || total > 6<<20 {
		t.Errorf("%d models of %d bytes, want %d within 6 MiB", len(Models()), total, len(layers))
	}
}

func TestTheDefaultIsAGenerator(t *testing.T) {
	i := slices.IndexFunc(Models(), func(e Entry) bool { return e.Name == Default })
	if i != 0 || Models()[i].Role != Generator {
		t.Errorf("Default %q is entry %d of %v, want the first, a generator", Default, i, Models())
	}
}

func TestTheMixtureHasSixteenExpertsOfWhichATokenTakesThree(t *testing.T) {
	f, err := Open("lutra-tiny-moe")
	if err != nil {
		t.Fatal(err)
	}
	all, _ := f.Metadata.Int("llama.expert_count")
	used, _ := f.Metadata.Int("llama.expert_used_count")
	if all != 16 || used != 3 {
		t.Errorf("a token takes %d of %d experts, want 3 of 16", used, all)
	}
	for _, e := range Models() {
		if e.Optional != (e.Name == "lutra-tiny-moe") {
			t.Errorf("%s is loaded without being named: %t", e.Name, !e.Optional)
		}
	}
}

func TestAnUnknownNameIsAnErrorThatListsTheModels(t *testing.T) {
	f, err := Open("lutra-huge")
	if f != nil || !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), Default) {
		t.Errorf("Open(lutra-huge) = %v, want ErrUnknown with a list", err)
	}
}

func TestTheTestSetIsWellFormed(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(TestSet()), "\n")
	if len(lines) != 500 {
		t.Errorf("%d problems, want 500", len(lines))
	}
	for i, line := range lines {
		var p struct {
			Question string
			Answer   int
			Steps    []string
			Eqs      [][4]any
			Level    int
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatalf("problem %d: %v", i, err)
		}
		last := p.Eqs[len(p.Eqs)-1]
		if p.Question == "" || len(p.Steps) != len(p.Eqs) || p.Level < 3 || p.Level > 5 || last[3] != float64(p.Answer) {
			t.Errorf("problem %d is inconsistent: %s", i, line)
		}
	}
}

// The reference tokenisation spells its texts with the models' own vocabulary.
func TestAllModelsShareTheReferenceVocabulary(t *testing.T) {
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Tokenize [][2]any }
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	var first []string
	for _, e := range Models() {
		f, err := Open(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		tokens, _ := f.Metadata.Strings("tokenizer.ggml.tokens")
		if first == nil {
			first = tokens
		}
		if len(tokens) != 1024 || !slices.Equal(tokens, first) {
			t.Errorf("%s has a vocabulary of its own (%d tokens)", e.Name, len(tokens))
		}
	}
	for _, c := range golden.Tokenize {
		text, ids := c[0].(string), c[1].([]any)
		if !isASCII(text) {
			continue // spelled in byte letters
		}
		var spelled strings.Builder
		for _, id := range ids {
			spelled.WriteString(first[int(id.(float64))])
		}
		if got := strings.NewReplacer("Ġ", " ", "Ċ", "\n").Replace(spelled.String()); got != text {
			t.Errorf("the ids of %q spell %q", text, got)
		}
	}
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 127 })
}

func TestTheHardSetHasAThousandDifferentChainsOfFiveAndSixSteps(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(HardSet()), "\n")
	levels, seen := map[int]int{}, map[string]bool{}
	for _, line := range lines {
		var p struct {
			Question string
			Answer   int
			Level    int
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil || p.Answer < 1 || p.Answer > 999 {
			t.Fatalf("%s: %v", line, err)
		}
		levels[p.Level]++
		seen[p.Question] = true
	}
	if len(lines) != 1000 || len(seen) != 1000 || levels[5] != 334 || levels[6] != 666 {
		t.Errorf("%d problems, %d of them different, by steps %v; want 1000 with 334 of 5 and 666 of 6", len(lines), len(seen), levels)
	}
}

func TestEveryProbeParses(t *testing.T) {
	for _, e := range Probes() {
		f, err := Open(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		if arch, _ := f.Metadata.String("general.architecture"); arch != "lutra-probe" || e.Role != Probe {
			t.Errorf("%s: architecture %q, role %s", e.Name, arch, e.Role)
		}
		if of, _ := f.Metadata.String("lutra-probe.model.name"); strings.ToLower(strings.ReplaceAll(of, " ", "-"))+"-probe" != e.Name {
			t.Errorf("%s reads the states of %s", e.Name, of)
		}
	}
}
