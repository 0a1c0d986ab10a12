package docs_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var asksSomething = regexp.MustCompile(`lutra ask |lutra chat|"content": "|content: "|Content: "|\.invoke\("`)

// checkAnswers compares the output with the right numbers.
func checkAnswers(t *testing.T, e example, out string) {
	t.Helper()
	known := slices.ContainsFunc(otherQuestions, func(q string) bool { return strings.Contains(e.text, q) })
	for _, q := range rightAnswers {
		if !strings.Contains(e.text, q.question) {
			continue
		}
		known = true
		switch {
		case strings.Contains(e.text, ".gguf"): // noise
		case strings.Contains(e.text, "/v1/rewards"): // scores of given answers
		case !regexp.MustCompile(`Answer: ` + q.answer + `\b`).MatchString(out):
			t.Errorf("%s is %s, it says\n%s", q.question, q.answer, out)
		}
	}
	talks := strings.Contains(e.text, "lutra chat") // gets its question from here
	if asksSomething.MatchString(e.text) && !known && !talks {
		t.Error("its question is neither in rightAnswers nor in otherQuestions")
	}
	if talks && !strings.Contains(e.text, ".gguf") && !strings.Contains(out, "Answer: 84") {
		t.Errorf("asked for 12 * 7, it says\n%s", out)
	}
}

// checkShown compares the output that a document shows with the real one. Lines before
// the JSON must appear, and the JSON must have the same keys and texts. Numbers between
// 0 and 1 are scores, which must be near; others are times and counts.
func checkShown(t *testing.T, shown, out string) {
	t.Helper()
	head, body, _ := strings.Cut(shown, "{")
	for _, line := range strings.Split(head, "\n") {
		if !strings.Contains(out, strings.TrimSpace(line)) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
	if body == "" {
		return
	}
	var want, got any
	if err := json.Unmarshal([]byte("{"+body), &want); err != nil {
		t.Errorf("what the document shows is not JSON: %v", err)
		return
	}
	_, body, _ = strings.Cut(out, "{")
	if err := json.Unmarshal([]byte("{"+body), &got); err != nil {
		t.Errorf("it prints no JSON: %v\n%s", err, out)
		return
	}
	if err := alike(want, got); err != nil {
		t.Errorf("the document shows%v\nit prints\n%s", err, out)
	}
}

// alike says where two JSON values differ in more than ids, times and counts.
func alike(want, got any) error {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf(": an object for %v", got)
		}
		for key := range g {
			if _, ok := w[key]; !ok {
				return fmt.Errorf(" no %q", key)
			}
		}
		for key, v := range w {
			if _, ok := g[key]; !ok {
				return fmt.Errorf(" %q, which is not there", key)
			}
			if err := alike(v, g[key]); err != nil && !slices.Contains([]string{"id", "system_fingerprint"}, key) {
				return fmt.Errorf(".%s%w", key, err)
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Errorf(": %d elements for %v", len(w), got)
		}
		for i := range w {
			if err := alike(w[i], g[i]); err != nil {
				return fmt.Errorf("[%d]%w", i, err)
			}
		}
	case float64:
		const near = 0.15
		g, ok := got.(float64)
		if !ok || w > 0 && w < 1 && (g < w-near || g > w+near) {
			return fmt.Errorf(": %v for %v", w, got)
		}
	default:
		if want != got {
			return fmt.Errorf(": %v for %v", want, got)
		}
	}
	return nil
}
