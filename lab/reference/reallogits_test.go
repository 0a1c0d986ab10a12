package reference

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models"
)

var update = flag.Bool("update", false, "write the table of docs/models.md")

// logitsOf are a model's log probabilities in float32.
type logitsOf struct {
	Peer  summary // llama.cpp's
	Texts []struct {
		Name     string
		IDs      []int32
		Top      [][]int32
		Logprobs [][]int // of Top, in units of -1e-4
	}
}

// summary says how far a distribution is from another, over all positions.
type summary struct {
	Positions int     `json:"positions"`
	KL        float64 `json:"kl"`
	Median    float64 `json:"median"`
	P99       float64 `json:"p99"`
	Top1      float64 `json:"top1"`
}

// divergence returns KL(reference || logits), where all tokens but those of top count as one, and
// whether the most likely token is the same.
func divergence(top []int32, logprobs []int, logits []float32) (kl float64, same bool) {
	restP, restQ, sum := 1.0, 1.0, logSum(logits)
	for i, id := range top {
		p, q := float64(logprobs[i])*-1e-4, float64(logits[id])-sum
		kl += math.Exp(p) * (p - q)
		restP, restQ = restP-math.Exp(p), restQ-math.Exp(q)
	}
	restP, restQ = max(restP, 1e-9), max(restQ, 1e-9)
	best := int32(0)
	for id, x := range logits {
		if x > logits[best] {
			best = int32(id)
		}
	}
	return kl + restP*math.Log(restP/restQ), best == top[0]
}

// compare scores the texts of a reference.
func (l *logitsOf) compare(t testing.TB, score Scorer) summary {
	t.Helper()
	var all []float64
	same := 0
	for _, text := range l.Texts {
		err := score(text.IDs, func(at int, logits []float32) error {
			kl, top := divergence(text.Top[at], text.Logprobs[at], logits)
			all = append(all, kl)
			if top {
				same++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	sum := 0.0
	for _, kl := range all {
		sum += kl
	}
	slices.SortFunc(all, cmp.Compare[float64])
	n := len(all)
	return summary{n, sum / float64(n), all[n/2], all[n*99/100], float64(same) / float64(n)}
}

// realModels are the public language models of .ci/real.
var realModels = []string{"smollm2", "gemma3-270m", "qwen2.5-coder-1.5b"}

func TestPublicModelsAreAsCloseToFloat32AsLlamaCpp(t *testing.T) {
	for _, name := range realModels {
		t.Run(name, func(t *testing.T) {
			path := realModel(t, name+".gguf")
			var want logitsOf
			var answers greedyOf
			recorded(t, name+".logits.json.gz", &want)
			recorded(t, name+".greedy.json.gz", &answers)
			withReal(t, Options{Model: path}, func(_ *models.Bundle, score Scorer) {
				got := want.compare(t, score)
				if got.Positions != want.Peer.Positions || got.KL > 1.3*want.Peer.KL || got.Top1 < want.Peer.Top1-0.02 {
					t.Errorf("%+v, want at most 1.3 times the divergence of llama.cpp, %+v", got, want.Peer)
				}
				equal := answers.compare(t, score)
				if equal < answers.Peer-4 {
					t.Errorf("%d answers are those of float32, llama.cpp has %d", equal, answers.Peer)
				}
				documented(t, name, fmt.Sprintf("| %s | %d | %.4f | %.4f | %.1f %% | %.1f %% | %d | %d |", name, got.Positions, got.KL, want.Peer.KL, 100*got.Top1, 100*want.Peer.Top1, equal, answers.Peer))
			})
		})
	}
}

// documented holds the row of a model in docs/models.md to what was measured; -update writes it. Other
// kernels round otherwise: a number may differ by a tenth, and a count by two.
func documented(t *testing.T, name, row string) {
	t.Helper()
	const file = "../../docs/models.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(name) + ` \|.*$`)
	if *update {
		if err := os.WriteFile(file, line.ReplaceAllLiteral(text, []byte(row)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	is, want := strings.Fields(string(line.Find(text))), strings.Fields(row)
	if len(is) != len(want) {
		t.Fatalf("docs/models.md has %q, want %q; -update writes it", is, want)
	}
	for i := range want {
		x, err := strconv.ParseFloat(want[i], 64)
		if err != nil {
			continue
		}
		may := x / 10
		if x == math.Trunc(x) {
			may = max(may, 2)
		}
		if y, err := strconv.ParseFloat(is[i], 64); err != nil || math.Abs(x-y) > may {
			t.Errorf("docs/models.md has %q, want %q; -update writes it", is, want)
			return
		}
	}
}
