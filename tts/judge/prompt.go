package judge

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts"
)

// asking is a question for a judge.
type asking struct {
	form  form
	turns []turn
	step  int // the latest solution step that is judged
}

// turn is a message of a prompt.
type turn struct {
	role  string
	parts []part
}

// part is a piece of a message.
type part struct {
	text string
	kind kind
}

// kind is whose text a part is.
type kind uint8

const (
	own      kind = iota // of the form, or the operator
	question             // of the request
	answer               // of a candidate: differs among the askings of a request
)

// user returns the only turn of a prompt in which texts stand in place of their names.
func user(prompt string, places map[string]part) []turn {
	var names []string
	for name := range places {
		names = append(names, regexp.QuoteMeta(name))
	}
	slices.Sort(names)
	t := turn{role: "user"}
	from := 0
	for _, at := range regexp.MustCompile(strings.Join(names, "|")).FindAllStringIndex(prompt, -1) {
		t.parts = append(t.parts, part{prompt[from:at[0]], own}, places[prompt[at[0]:at[1]]])
		from = at[1]
	}
	t.parts = append(t.parts, part{prompt[from:], own})
	return []turn{t}
}

const thinkPrompt = `You are given a math problem and a proposed step-by-step solution:

[Math Problem]

{question}

[Solution]

{answer}

Review and critique each step in the proposed solution to determine whether each step is correct. If the solution is incomplete, only verify the provided steps.`

// checks asks to check the steps of a solution, together.
func checks(asked string, steps []string) asking {
	var b strings.Builder
	for i, step := range steps {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "Step %d: %s", i+1, step)
	}
	return asking{form: think, step: len(steps), turns: user(thinkPrompt, map[string]part{questionPlace: {asked, question}, answerPlace: {b.String(), answer}})}
}

const genSystem = "You are a math teacher. Your task is to review and critique the paragraphs in solution step by step."

// checksLast asks to check the last of some steps. Those before it were found right.
func checksLast(asked string, steps []string) asking {
	a := asking{form: gen, step: len(steps), turns: []turn{{"system", []part{{genSystem, own}}}}}
	a.form.begin = fmt.Sprintf(gen.begin, len(steps))
	for i, step := range steps {
		t := turn{role: "user"}
		if i == 0 {
			t.parts = []part{{"Question: ", own}, {asked, question}, {"\n\n", own}}
		} else {
			a.turns = append(a.turns, turn{"assistant", []part{{"<output>\n**Judgement**: $\\boxed{Yes}$\n</output>", own}}})
		}
		t.parts = append(t.parts, part{step, answer})
		a.turns = append(a.turns, t)
	}
	return a
}

const rubricPrompt = `Judge an answer to a question by these criteria:
{rubric}

Question:
{question}

Answer:
{answer}

Reply with JSON: {"reason": why, in a sentence or two, "score": a whole number from 0 (worst) to {scale} (best)}`

// grades asks for a score by a rubric.
func (o *Options) grades(asked, currentText string, step int) asking {
	prompt := rubricPrompt
	if o.Template != "" {
		prompt = o.Template
	}
	return asking{form: graded(o.Scale), step: step, turns: user(prompt, map[string]part{
		questionPlace: {asked, question}, answerPlace: {currentText, answer}, rubricPlace: {o.Rubric, own}, scalePlace: {strconv.Itoa(o.Scale), own},
	})}
}

// place stands for a part while a chat template writes the prompt.
const place = "{lutra: part %d}"

var places = regexp.MustCompile(`\{lutra: part (\d+)\}`)

// encode writes what m reads: head is what all askings of a request begin with. inThought says
// that a thought has begun in which the critique stands.
func (a *asking) encode(ctx context.Context, m *tts.Model) (head, rest []int32, inThought bool, err error) {
	var parts []part
	p := tts.Prompt{}
	for _, t := range a.turns {
		content := ""
		for _, part := range t.parts {
			if part.kind == own {
				content += part.text
				continue
			}
			content += fmt.Sprintf(place, len(parts))
			parts = append(parts, part)
		}
		p.Messages = append(p.Messages, template.Message{Role: t.role, Content: content})
	}
	p.SwitchThinking(false)
	var rendered string
	if m.Template != nil {
		if rendered, err = m.Render(ctx, &p); err != nil {
			return nil, nil, false, err
		}
	} else {
		for _, message := range p.Messages {
			rendered += message.Content.(string) + "\n\n"
		}
	}
	begin := a.form.begin
	marks := m.ThoughtMarks()
	if inThought = marks.EndsInThought(rendered); inThought && a.form.schema != "" {
		begin, inThought = "\n"+marks.End+"\n\n", false
	}
	dst, from := &head, 0
	add := func(text string, foreign, first bool) error {
		ids, err := m.Encode(ctx, &tts.Prompt{Text: text, NoBOS: !first || m.Template != nil, NoSpecialTokens: foreign})
		*dst = append(*dst, ids...)
		return err
	}
	found := places.FindAllStringSubmatchIndex(rendered, -1)
	if len(found) != len(parts) {
		return nil, nil, false, fmt.Errorf("%w: it does not show all that is to be judged", tts.ErrTemplate)
	}
	for i, at := range found {
		if err := add(rendered[from:at[0]], false, i == 0); err != nil {
			return nil, nil, false, err
		}
		if parts[i].kind == answer {
			dst = &rest
		}
		if err := add(parts[i].text, true, false); err != nil {
			return nil, nil, false, err
		}
		from = at[1]
	}
	return head, rest, inThought, add(rendered[from:]+begin, false, false)
}
