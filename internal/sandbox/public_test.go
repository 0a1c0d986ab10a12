package sandbox

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// The 164 problems of HumanEval (github.com/openai/human-eval) are like what models write.
func TestSolutionsOfPublicProblemsPassTheirTests(t *testing.T) {
	dir := os.Getenv("LUTRA_REAL")
	if dir == "" {
		t.Skip("LUTRA_REAL names no folder of public problems; .ci/real makes one")
	}
	f, err := os.Open(filepath.Join(dir, "human-eval.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := Load(t.Context(), "python"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var p struct {
			ID       string `json:"task_id"`
			Prompt   string `json:"prompt"`
			Name     string `json:"entry_point"`
			Solution string `json:"canonical_solution"`
			Test     string `json:"test"`
		}
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		test := p.Test + "\ncheck(" + p.Name + ")"
		for code, want := range map[string]int{p.Prompt + p.Solution: 1, p.Prompt + "    return None\n": 0} {
			r, err := Run(t.Context(), &Program{"python", code, []string{test}}, stepsOf(true))
			if err != nil {
				t.Fatal(err)
			}
			if r.Passed != want {
				t.Errorf("%s: %+v, want %d passed", p.ID, r, want)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}
