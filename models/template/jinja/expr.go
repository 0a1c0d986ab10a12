package jinja

import (
	"math"
	"strconv"
	"strings"
)

// tuple reads an expression, or several with commas between as a tuple.
func (p *parser) tuple() (expr, error) { return p.tupleOf(p.expression) }

func (p *parser) tupleOf(element func() (expr, error)) (expr, error) {
	first, err := element()
	if err != nil || !p.op(",") {
		return first, err
	}
	t := &listExpr{items: []expr{first}, tuple: true}
	for {
		switch k := p.peek(); {
		case k.kind == tokVarEnd, k.kind == tokBlockEnd, k.kind == tokOp && k.text == ")":
			return t, nil
		}
		item, err := element()
		if err != nil {
			return nil, err
		}
		t.items = append(t.items, item)
		if !p.op(",") {
			return t, nil
		}
	}
}

// expression reads a conditional expression. From the loosest binding to the
// tightest: if else, or, and, not, comparisons, + -, ~, * / // %, **, signs,
// postfixes with filters and tests.
func (p *parser) expression() (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	value, err := p.or()
	if err != nil {
		return nil, err
	}
	for p.isWord("if") {
		c := &condExpr{line: p.take().line, then: value}
		if c.cond, err = p.or(); err != nil {
			return nil, err
		}
		if p.word("else") {
			if c.alt, err = p.expression(); err != nil {
				return nil, err
			}
		}
		value = c
	}
	return value, nil
}

func (p *parser) or() (expr, error) {
	return p.logic("or", func() (expr, error) { return p.logic("and", p.not) })
}

func (p *parser) logic(word string, operand func() (expr, error)) (expr, error) {
	left, err := operand()
	for err == nil && p.isWord(word) {
		b := &binaryExpr{line: p.take().line, op: word, left: left}
		b.right, err = operand()
		left = b
	}
	return left, err
}

func (p *parser) not() (expr, error) {
	if !p.isWord("not") {
		return p.compare()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	line := p.take().line
	value, err := p.not()
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

func (p *parser) compare() (expr, error) {
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	c := &compareExpr{line: p.peek().line, first: first}
	for op := p.comparison(); op != ""; op = p.comparison() {
		right, err := p.sum()
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

// chain reads operands with left-associative operators between them.
func (p *parser) chain(operand func() (expr, error), ops ...string) (expr, error) {
	left, err := operand()
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
		right, err := operand()
		if err != nil {
			return nil, err
		}
		left = &binaryExpr{line, op, left, right}
	}
}

func (p *parser) sum() (expr, error)     { return p.chain(p.concat, "+", "-") }
func (p *parser) concat() (expr, error)  { return p.chain(p.product, "~") }
func (p *parser) product() (expr, error) { return p.chain(p.power, "*", "//", "/", "%") }
func (p *parser) power() (expr, error) {
	return p.chain(func() (expr, error) { return p.unary(true) }, "**")
}

// unary reads signs; filters and tests bind to the signed value.
func (p *parser) unary(filtered bool) (value expr, err error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	t := p.peek()
	if p.op("-") || p.op("+") {
		if value, err = p.unary(false); err == nil {
			value = &unaryExpr{t.line, t.text, value}
		}
	} else {
		value, err = p.primary()
		if err == nil {
			value, err = p.postfix(value)
		}
	}
	if err != nil || !filtered {
		return value, err
	}
	return p.filtersAndTests(value)
}

func (p *parser) primary() (expr, error) {
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
			return p.parenthesis()
		case "[":
			return p.list()
		case "{":
			return p.dict(t.line)
		}
	}
	return nil, &SyntaxError{t.line, "expected an expression"}
}

func (p *parser) parenthesis() (expr, error) {
	if p.op(")") {
		return &listExpr{tuple: true}, nil
	}
	value, err := p.tuple()
	if err != nil {
		return nil, err
	}
	return value, p.wantOp(")")
}

func (p *parser) list() (expr, error) {
	l := &listExpr{}
	for !p.op("]") {
		item, err := p.expression()
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

func (p *parser) dict(line int) (expr, error) {
	d := &dictExpr{line: line}
	for !p.op("}") {
		key, err := p.expression()
		if err != nil {
			return nil, err
		}
		if err := p.wantOp(":"); err != nil {
			return nil, err
		}
		value, err := p.expression()
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
