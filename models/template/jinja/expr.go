package jinja

import (
	"math"
	"strconv"
	"strings"
)

// rule reads an expression that binds no looser than the rule says.
type rule func(p *parser) (expr, error)

// parseTuple reads an expression, or several with commas between as a tuple.
func parseTuple(p *parser) (expr, error) { return parseTupleOf(p, parseExpression) }

func parseTupleOf(p *parser, element rule) (expr, error) {
	first, err := element(p)
	if err != nil || !p.op(",") {
		return first, err
	}
	t := &listExpr{items: []expr{first}, tuple: true}
	for {
		switch k := p.peek(); {
		case k.kind == tokVarEnd, k.kind == tokBlockEnd, k.kind == tokOp && k.text == ")":
			return t, nil
		}
		item, err := element(p)
		if err != nil {
			return nil, err
		}
		t.items = append(t.items, item)
		if !p.op(",") {
			return t, nil
		}
	}
}

// parseExpression reads a conditional expression. From the loosest binding to the
// tightest: if else, or, and, not, comparisons, + -, ~, * / // %, **, signs,
// postfixes with filters and tests.
func parseExpression(p *parser) (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	value, err := parseOr(p)
	if err != nil {
		return nil, err
	}
	for p.isWord("if") {
		c := &condExpr{line: p.take().line, then: value}
		if c.cond, err = parseOr(p); err != nil {
			return nil, err
		}
		if p.word("else") {
			if c.alt, err = parseExpression(p); err != nil {
				return nil, err
			}
		}
		value = c
	}
	return value, nil
}

func parseOr(p *parser) (expr, error)  { return parseLogic(p, "or", parseAnd) }
func parseAnd(p *parser) (expr, error) { return parseLogic(p, "and", parseNot) }

func parseLogic(p *parser, word string, operand rule) (expr, error) {
	left, err := operand(p)
	for err == nil && p.isWord(word) {
		b := &binaryExpr{line: p.take().line, op: word, left: left}
		b.right, err = operand(p)
		left = b
	}
	return left, err
}

func parseNot(p *parser) (expr, error) {
	if !p.isWord("not") {
		return parseComparison(p)
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	line := p.take().line
	value, err := parseNot(p)
	return &unaryExpr{line, "not", value}, err
}

// comparison takes a comparing operator if one comes next.
func (p *parser) comparison() string {
	t := p.peek()
	if t.kind == tokOp {
		switch t.text {
		case "==", "!=", "<", "<=", ">", ">=":
			return p.take().text
		}
	}
	if p.word("in") {
		return "in"
	}
	if p.isWord("not") && p.tokens[p.pos+1].kind == tokName && p.tokens[p.pos+1].text == "in" {
		p.pos += 2
		return "not in"
	}
	return ""
}

func parseComparison(p *parser) (expr, error) {
	first, err := parseSum(p)
	if err != nil {
		return nil, err
	}
	c := &compareExpr{line: p.peek().line, first: first}
	for op := p.comparison(); op != ""; op = p.comparison() {
		right, err := parseSum(p)
		if err != nil {
			return nil, err
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, right)
	}
	if len(c.ops) == 0 {
		return first, nil
	}
	return c, nil
}

// parseChain reads operands with left-associative operators between them.
func parseChain(p *parser, operand rule, ops ...string) (expr, error) {
	left, err := operand(p)
	if err != nil {
		return nil, err
	}
	for {
		op := ""
		line := p.peek().line
		for _, o := range ops {
			if p.op(o) {
				op = o
				break
			}
		}
		if op == "" {
			return left, nil
		}
		right, err := operand(p)
		if err != nil {
			return nil, err
		}
		left = &binaryExpr{line, op, left, right}
	}
}

func parseSum(p *parser) (expr, error)     { return parseChain(p, parseConcat, "+", "-") }
func parseConcat(p *parser) (expr, error)  { return parseChain(p, parseProduct, "~") }
func parseProduct(p *parser) (expr, error) { return parseChain(p, parsePower, "*", "//", "/", "%") }
func parsePower(p *parser) (expr, error)   { return parseChain(p, parseSigned, "**") }

// parseSigned reads a signed value with the filters and tests that bind to it.
func parseSigned(p *parser) (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	value, err := parseUnary(p)
	if err != nil {
		return nil, err
	}
	return parseFiltersAndTests(p, value)
}

// parseUnary reads signs and what they stand before.
func parseUnary(p *parser) (expr, error) {
	t := p.peek()
	if !p.op("-") && !p.op("+") {
		value, err := parsePrimary(p)
		if err != nil {
			return nil, err
		}
		return parsePostfix(p, value)
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	value, err := parseUnary(p)
	if err != nil {
		return nil, err
	}
	return &unaryExpr{t.line, t.text, value}, nil
}

func parsePrimary(p *parser) (expr, error) {
	t := p.take()
	switch t.kind {
	case tokName:
		switch t.text {
		case "true", "True":
			return constExpr{true}, nil
		case "false", "False":
			return constExpr{false}, nil
		case "none", "None":
			return constExpr{nil}, nil
		}
		return &nameExpr{t.text}, nil
	case tokString:
		var b strings.Builder // adjacent literals are one
		b.WriteString(t.text)
		for p.peek().kind == tokString {
			b.WriteString(p.take().text)
		}
		return constExpr{b.String()}, nil
	case tokInt:
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			return nil, &SyntaxError{t.line, "number " + t.text + " is too large"}
		}
		return constExpr{n}, nil
	case tokFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil || math.IsInf(f, 0) {
			return nil, &SyntaxError{t.line, "bad number " + t.text}
		}
		return constExpr{f}, nil
	case tokOp:
		switch t.text {
		case "(":
			return parseParenthesis(p)
		case "[":
			return parseList(p)
		case "{":
			return parseDict(p, t.line)
		}
	}
	return nil, &SyntaxError{t.line, "expected an expression"}
}

func parseParenthesis(p *parser) (expr, error) {
	if p.op(")") {
		return &listExpr{tuple: true}, nil
	}
	value, err := parseTuple(p)
	if err != nil {
		return nil, err
	}
	return value, p.wantOp(")")
}

func parseList(p *parser) (expr, error) {
	l := &listExpr{}
	for !p.op("]") {
		item, err := parseExpression(p)
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, item)
		if !p.op(",") {
			return l, p.wantOp("]")
		}
	}
	return l, nil
}

func parseDict(p *parser, line int) (expr, error) {
	d := &dictExpr{line: line}
	for !p.op("}") {
		key, err := parseExpression(p)
		if err != nil {
			return nil, err
		}
		if err := p.wantOp(":"); err != nil {
			return nil, err
		}
		value, err := parseExpression(p)
		if err != nil {
			return nil, err
		}
		d.keys, d.values = append(d.keys, key), append(d.values, value)
		if !p.op(",") {
			return d, p.wantOp("}")
		}
	}
	return d, nil
}
