package npu

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/lab/npu/ablation"
)

func ablate(t *testing.T, name string) *Ablation {
	t.Helper()
	a, err := Ablate(name, ablation.Recorded())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// ratios are the cells of the last column, up to a dash.
func ratios(t *testing.T, a *Ablation, column int) (list []float64) {
	t.Helper()
	for _, row := range a.Rows {
		cell, _, _ := strings.Cut(row[column], " ")
		x, err := strconv.ParseFloat(strings.TrimSuffix(cell, "×"), 64)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	return list
}

func TestEveryAblationIsATableThatSaysWhereItIsFrom(t *testing.T) {
	for _, name := range Ablations() {
		a := ablate(t, name)
		for _, row := range a.Rows {
			if len(row) != len(a.Head) {
				t.Errorf("%s: %d cells under %d heads", name, len(row), len(a.Head))
			}
		}
		var out bytes.Buffer
		if err := a.Print(&out); err != nil {
			t.Fatal(err)
		}
		if len(a.Rows) < 3 || len(a.Notes) == 0 || !strings.Contains(out.String(), "modelled") || AblationTitle(name) != a.Title {
			t.Errorf("%s:\n%s", name, &out)
		}
	}
	if _, err := Ablate("speed", ablation.Recorded()); err == nil {
		t.Error("an ablation that is not there")
	}
}

func TestTheOrderOfThePapersComparisonsIsFound(t *testing.T) {
	if r := ratios(t, ablate(t, "layouts"), 5); !(r[0] > 9 && r[1] > 1.8 && r[1] < r[0] && r[2] == 1 && r[3] <= 1) {
		t.Errorf("beside super-groups: %v", r)
	}
	if r := ratios(t, ablate(t, "exponentials"), 3); !(r[0] > r[1] && r[1] > 1.2) {
		t.Errorf("beside the table: %v", r)
	}
	if r := ratios(t, ablate(t, "lookups"), 4); !(r[1] > r[3] && r[0] > r[2]) {
		t.Errorf("VLUT16 is not ahead of VLUT32: %v", r)
	}
}
