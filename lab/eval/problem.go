package eval

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/lutra-lm/lutra/tts/answer"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/verify"
)

// Problem is a question with its right answer, or with a program that tells whether an answer is right.
type Problem struct {
	Question string   `json:"question"`
	Answer   string   `json:"answer"`
	Program  *Program `json:"program,omitempty"`
}

// Program is the test of an answer in Python.
type Program struct {
	Begin string `json:"begin"` // stands before the answer's code
	Test  string `json:"test"`  // throws if the code is wrong
}

// Bounds of what Load reads: a line holds one problem, whose solution is a page
// at most, and a set more than anyone evaluates on one machine.
const (
	maxLine     = 1 << 20
	maxProblems = 1 << 16
)

// ErrData says that a data set cannot be used.
var ErrData = errors.New("bad data")

// read finds the answer in a text, and reports whether it is the right one. Errors are ctx's.
func (p Problem) read(ctx context.Context, text string) (found string, right bool, err error) {
	if p.Program != nil {
		right, err := p.Program.passes(ctx, text)
		return "", right, err
	}
	a, ok := defaultReader.Read(text)
	return a.Text, ok && p.right(a), nil
}

// passes reports whether the code in a text passes the test.
func (p *Program) passes(ctx context.Context, text string) (bool, error) {
	check, err := verify.New(ctx, &scaling.Verify{Language: "python", Tests: []string{p.Test}}, nil)
	if err != nil {
		return false, err
	}
	if !strings.Contains(text, "```") {
		text = python(text)
	}
	verdict, err := check.Check(ctx, python(p.Begin)+text)
	return verdict.Score == 1, err
}

// python returns code as a block of an answer.
func python(code string) string { return "```python\n" + code + "\n```\n" }

// right reports whether an answer is the right one. Data sets leave out percent
// signs as they like.
func (p Problem) right(a answer.Answer) bool {
	return a.Key == defaultReader.Key(p.Answer) || defaultReader.Key(noPercent(a.Text)) == defaultReader.Key(noPercent(p.Answer))
}

// Right reports whether a text ends in the right answer, and returns the key that equal answers have;
// empty: it has none.
func (p Problem) Right(text string) (key string, right bool) {
	a, ok := defaultReader.Read(text)
	return a.Key, ok && p.right(a)
}

func noPercent(s string) string { return strings.NewReplacer(`\%`, "", "%", "").Replace(s) }

// Load reads a data set, one JSON object a line; blank lines are skipped. Each has a question under "question" (GSM8K) or
// "problem" (MATH500), and an answer that is a number or a text. Only the text after the last "####" of an answer counts.
// Without an answer it is the \boxed text of "solution" (MATH). An object with an "entry_point" is a problem of HumanEval:
// "prompt" begins a function, and "test" defines check, which tells whether it is right. Errors wrap ErrData and name the line.
func Load(r io.Reader) ([]Problem, error) {
	var problems []Problem
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		p, err := parseProblem(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrData, n, err)
		}
		if len(problems) == maxProblems {
			return nil, fmt.Errorf("%w: line %d: more than %d problems", ErrData, n, maxProblems)
		}
		problems = append(problems, p)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%w: line %d is longer than %d bytes", ErrData, n+1, maxLine)
	} else if err != nil {
		return nil, fmt.Errorf("eval: read data: %w", err)
	}
	if len(problems) == 0 {
		return nil, fmt.Errorf("%w: it holds no problems", ErrData)
	}
	return problems, nil
}

func parseProblem(line []byte) (Problem, error) {
	var fields struct {
		Question, Problem string
		Answer, Solution  json.RawMessage
		Prompt, Test      string
		Entry             string `json:"entry_point"`
	}
	if err := json.Unmarshal(line, &fields); err != nil {
		return Problem{}, err
	}
	if fields.Entry != "" {
		if strings.TrimSpace(fields.Prompt) == "" || strings.TrimSpace(fields.Test) == "" {
			return Problem{}, errors.New(`"entry_point" is there, but "prompt" or "test" is not`)
		}
		return Problem{Question: "Write this Python function:\n\n" + python(fields.Prompt),
			Program: &Program{fields.Prompt, fields.Test + "\ncheck(" + fields.Entry + ")"}}, nil
	}
	p := Problem{Question: fields.Question}
	switch {
	case fields.Question != "" && fields.Problem != "":
		return p, errors.New(`both "question" and "problem" are there`)
	case fields.Problem != "":
		p.Question = fields.Problem
	}
	if strings.TrimSpace(p.Question) == "" {
		return p, errors.New(`neither "question" nor "problem" holds a text`)
	}
	var err error
	if len(fields.Answer) == 0 && len(fields.Solution) > 0 {
		p.Answer, err = boxedIn(fields.Solution)
		return p, err
	}
	p.Answer, err = parseAnswer(fields.Answer)
	return p, err
}

// boxedIn returns the answer that a solution boxes.
func boxedIn(raw json.RawMessage) (string, error) {
	var solution string
	if err := json.Unmarshal(raw, &solution); err != nil {
		return "", errors.New(`"solution" is no text`)
	}
	a, ok := boxedReader.Read(solution)
	if !ok {
		return "", errors.New(`there is no "answer", and "solution" has no \boxed one`)
	}
	return a.Text, nil
}

func parseAnswer(raw json.RawMessage) (string, error) {
	var text string
	var number json.Number
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", errors.New(`there is no "answer"`)
	case raw[0] == '"':
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", err
		}
	default:
		if err := json.Unmarshal(raw, &number); err != nil {
			return "", errors.New(`"answer" is neither a text nor a number`)
		}
		text = number.String()
	}
	if at := strings.LastIndex(text, "####"); at >= 0 {
		text = text[at+len("####"):]
	}
	text = strings.TrimSpace(text)
	if defaultReader.Key(text) == "" {
		return "", errors.New(`"answer" is empty`)
	}
	return text, nil
}

// defaultReader finds answers by the default rule of strategies, boxedReader the answers of solutions in MATH.
var defaultReader, boxedReader = reader(answer.Rule{}), reader(answer.Rule{Extract: "boxed"})

func reader(rule answer.Rule) *answer.Reader {
	r, err := rule.Compile()
	if err != nil {
		panic(err) // both are documented to be valid
	}
	return r
}

// Hash identifies a data set in a journal.
func Hash(problems []Problem) string {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(problems); err != nil {
		panic(err) // strings always encode
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
