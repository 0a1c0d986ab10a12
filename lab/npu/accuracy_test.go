package npu

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/embedded"
)

func TestRotatedWeightsAreSpreadAndComputeTheSame(t *testing.T) {
	problems, err := solved(4)
	if err != nil {
		t.Fatal(err)
	}
	f, err := embedded.Open("lutra-tiny-s")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	path := filepath.Join(t.TempDir(), "rotated.gguf")
	if _, err := (scheme{}).write(path, f); err != nil {
		t.Fatal(err)
	}
	want, err := subject{config.Model{Embedded: "lutra-tiny-s"}, config.CPU}.perplexity(t.Context(), problems)
	if err != nil {
		t.Fatal(err)
	}
	got, err := subject{config.Model{Path: path}, config.CPU}.perplexity(t.Context(), problems)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(math.Log(got)-math.Log(want)) > 0.01 || want < 1 || want > 1.2 {
		t.Errorf("perplexity %v, of the model as it is %v", got, want)
	}
	row := make([]float32, 256)
	for i := range row {
		row[i] = float32(i%3 - 1)
	}
	was := 0.0
	for _, v := range row {
		was += float64(v) * float64(v)
	}
	rotate(row, someSigns(256))
	is, levels := 0.0, map[float32]bool{}
	for _, v := range row {
		is, levels[v] = is+float64(v)*float64(v), true
	}
	if math.Abs(is-was) > 1e-3 || len(levels) < 20 {
		t.Errorf("a rotated row has length² %v and %d values, was %v and 3", is, len(levels), was)
	}
}

// The errors of weights that are spread, by the names of schemes: of a small matrix, and
// where all is swept of a model's.
func TestFewerBitsCostMoreAndBlocksLessThanChannels(t *testing.T) {
	wrong, r := map[string]float64{"float32": 0}, rand.New(rand.NewPCG(1, 2))
	weights := make([]float32, 64*1024)
	for i := range weights {
		weights[i] = float32(r.NormFloat64())
	}
	rows := layout.Rows{Rows: 64, Cols: 1024, Row: func(m int, dst []float32) { copy(dst, weights[m*1024:(m+1)*1024]) }}
	for _, s := range schemes[1:] {
		d, err := s.quantise(rows)
		if err != nil {
			t.Fatal(err)
		}
		wrong[s.name] = 100 * layout.RelativeError(rows, d)
	}
	fewerBitsCostMore(t, wrong)
}

func TestAccuracyIsARowForEachScheme(t *testing.T) {
	if testing.Short() {
		t.Skip("loads a model for each scheme")
	}
	some := schemes
	if !sweep.All(t) {
		some = schemes[:2]
	}
	calls := 0
	a, err := accuracy(t.Context(), "lutra-tiny-s", 3, some, func() { calls++ })
	if err != nil {
		t.Fatal(err)
	}
	if want := len(some) + len(backends); len(a.Rows) != want || calls != want {
		t.Fatalf("%d rows and %d calls, want %d", len(a.Rows), calls, want)
	}
	wrong := map[string]float64{}
	for _, row := range a.Rows {
		x, err := strconv.ParseFloat(strings.TrimSuffix(row[2], " %"), 64)
		if err != nil {
			t.Fatal(err)
		}
		wrong[row[0]] = x
	}
	if sweep.All(t) {
		fewerBitsCostMore(t, wrong)
	} else if wrong["float32"] != 0 || wrong[some[1].name] < 1 {
		t.Errorf("errors of weights: %v", wrong)
	}
}

// fewerBitsCostMore holds errors in percent against each other.
func fewerBitsCostMore(t *testing.T, wrong map[string]float64) {
	t.Helper()
	if wrong["float32"] != 0 || wrong["W4 per block of 64"] >= wrong["W4 per channel"] || wrong["W2 per block of 64"] >= wrong["W2 per channel"] ||
		wrong["W2 per block of 64"] <= 2*wrong["W4 per block of 64"] {
		t.Errorf("errors of weights: %v", wrong)
	}
	if common, tiles := wrong["Q4_0, common groups of 32"], wrong["Q4_0, tile groups of 2×16"]; common == 0 || math.Abs(common-tiles) > 0.1*common {
		t.Errorf("tile groups are wrong by %v %%, common ones by %v %%", tiles, common)
	}
}

func TestTheSameSignsAreAlwaysWrittenInTheSameOrder(t *testing.T) {
	signs := map[int][]float32{3: {1, -1, 1}, 1: {-1}, 2: {1, 1}}
	for range 30 {
		md := rotation(nil, signs)
		widths, values := md[`prism.hadamard.sign_widths`], md[`prism.hadamard.sign_values`]
		if !reflect.DeepEqual(widths, []int64{1, 2, 3}) || !reflect.DeepEqual(values, []int8{-1, 1, 1, 1, -1, 1}) {
			t.Fatalf("widths %v, values %v", widths, values)
		}
	}
}
