package judge

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The names of the forms.
const (
	FormatThink  = "think-prm"
	FormatGen    = "gen-prm"
	FormatRubric = "rubric"
)

// form describes the prompt of a critique, and the place of its decision. The checkpoints think-prm and gen-prm were trained
// with the texts of these names.
type form struct {
	begin  string    // of the critique, which the model goes on from; %d: the solution step
	mark   string    // ends with where the decision's words stand
	lead   string    // leads to the decision, after what is left open is closed
	words  []string  // of decisions
	values []float64 // of these, in [0, 1]
	end    string    // of the text, behind a decision
	schema string    // that the text is held to; empty: nothing
}

// think has a chain of thought check all steps, and asks whether the solution is right (Khalifa et
// al. 2025, "Process Reward Models That Think", §3).
var think = form{
	begin: "Let's verify step by step:", mark: "Is the solution correct?", lead: "\nIs the solution correct?",
	words: []string{" Yes", " No"}, values: []float64{1, 0},
}

// gen analyses one solution step after those before it (Zhao et al. 2025, "GenPRM: Scaling
// Test-Time Compute of Process Reward Models via Generative Reasoning", §3), and runs no code.
var gen = form{
	begin: "<analyze>\nLet's analyze the Paragraph %d step by step: ", mark: `\boxed{`, lead: "\n</analyze>\n<output>\n**Judgement**: $\\boxed{",
	words: []string{"Yes", "No"}, values: []float64{1, 0}, end: "}$\n</output>",
}

// graded decides on a number from 0 to scale.
func graded(scale int) form {
	f := form{mark: `"score":`, lead: ` "score":`, end: "}"}
	for n := range scale + 1 {
		f.words = append(f.words, " "+strconv.Itoa(n))
		f.values = append(f.values, float64(n)/float64(scale))
	}
	f.schema = fmt.Sprintf(`{"type": "object", "properties": {"reason": {"type": "string"}, "score": {"type": "integer", "minimum": 0, "maximum": %d}},
		"required": ["reason", "score"], "additionalProperties": false}`, scale)
	return f
}

// decision returns where the decision's words stand in a critique: behind the mark. No string in
// JSON holds a mark, whose quotes would be escaped there.
func (f *form) decision(answer string) (at int, ok bool) {
	i := strings.Index(answer, f.mark)
	return i + len(f.mark), i >= 0
}

// closing returns what leads from a critique without a decision to it.
func (f *form) closing(answer string, inThought bool) string {
	if f.schema == "" {
		if inThought {
			return "\n</think>" + f.lead
		}
		return f.lead
	}
	answer = strings.TrimSpace(answer)
	const reason = `"reason": "",`
	if rest, ok := unwritten(answer, reason+f.lead, func(before string) bool { return before == "{" }); ok {
		return rest
	}
	for _, lead := range []string{f.lead, strings.TrimSpace(f.lead)} {
		rest, ok := unwritten(answer, lead, func(before string) bool {
			reason, ok := strings.CutSuffix(before, ",")
			return ok && json.Valid([]byte(reason+"}"))
		})
		if ok {
			return rest
		}
	}
	for _, close := range []string{`"`, `\"`, `0"`, `00"`, `000"`, `0000"`} { // an escape may be half written
		if json.Valid([]byte(answer + close + `}`)) {
			return close + "," + f.lead
		}
	}
	if json.Valid([]byte(answer + `}`)) {
		return "," + f.lead
	}
	return "\n{" + reason + f.lead // not begun
}

// unwritten returns what follows the beginning of text with which answer ends, where it ends with one
// behind what is whole.
func unwritten(answer, text string, whole func(before string) bool) (rest string, ok bool) {
	for n := len(text) - 1; n >= 0; n-- {
		if before, ok := strings.CutSuffix(answer, text[:n]); ok && whole(strings.TrimSpace(before)) {
			return text[n:], true
		}
	}
	return "", false
}

// labels match a chain of thought's labels of steps.
var labels = regexp.MustCompile(`\\boxed\{\s*(?:\\text\{)?\s*(correct|incorrect)\s*\}`)

// readLabels returns what a critique says of the solution steps, in their order: of at most steps.
func readLabels(answer string, steps int) []bool {
	var out []bool
	for _, m := range labels.FindAllStringSubmatch(strings.ToLower(answer), steps) {
		out = append(out, m[1] == "correct")
	}
	return out
}

// steps divides an answer where one of stops ends a solution step. Blank ones do not count.
func steps(answer string, stops []string) (out []string) {
	for answer != "" {
		end := len(answer)
		for _, stop := range stops {
			if i := strings.Index(answer, stop); i >= 0 {
				end = min(end, i+len(stop))
			}
		}
		if step := strings.TrimSpace(answer[:end]); step != "" {
			out = append(out, step)
		}
		answer = answer[end:]
	}
	return out
}
