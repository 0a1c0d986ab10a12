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
		return &nameExpr{t.line, t.text}, nil
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

// postfix reads attributes, subscripts and calls.
func (p *parser) postfix(value expr) (expr, error) {
	for {
		line := p.peek().line
		switch {
		case p.op("."):
			t := p.take()
			switch t.kind {
			case tokName:
				value = &attrExpr{line, value, t.text}
			case tokInt:
				n, err := strconv.ParseInt(t.text, 10, 64)
				if err != nil {
					return nil, p.fail("bad index %s", t.text)
				}
				value = &itemExpr{line, value, constExpr{n}}
			default:
				return nil, p.fail("expected an attribute's name")
			}
		case p.op("["):
			v, err := p.subscript(line, value)
			if err != nil {
				return nil, err
			}
			value = v
		case p.op("("):
			args, err := p.arguments()
			if err != nil {
				return nil, err
			}
			value = &callExpr{line, value, args}
		default:
			return value, nil
		}
	}
}

// subscript reads an index or a slice after its bracket.
func (p *parser) subscript(line int, value expr) (expr, error) {
	var part [3]expr
	colons := 0
	for !p.op("]") {
		if p.op(":") {
			if colons++; colons > 2 {
				return nil, p.fail("too many colons in a slice")
			}
			continue
		}
		if part[colons] != nil {
			return nil, p.fail("expected ]")
		}
		e, err := p.tuple()
		if err != nil {
			return nil, err
		}
		part[colons] = e
	}
	switch {
	case colons > 0:
		return &sliceExpr{line, value, part[0], part[1], part[2]}, nil
	case part[0] == nil:
		return nil, p.fail("empty subscript")
	}
	return &itemExpr{line, value, part[0]}, nil
}

// arguments reads a call's arguments after its parenthesis.
func (p *parser) arguments() (a callArgs, err error) {
	for !p.op(")") {
		switch t := p.peek(); {
		case p.op("**"):
			a.kwargs, err = p.expression()
		case p.op("*"):
			a.spread, err = p.expression()
		case t.kind == tokName && p.tokens[p.pos+1].kind == tokOp && p.tokens[p.pos+1].text == "=":
			p.pos += 2
			var value expr
			value, err = p.expression()
			a.names, a.values = append(a.names, t.text), append(a.values, value)
		default:
			if len(a.names) > 0 {
				return a, p.fail("an argument without name follows one with a name")
			}
			var value expr
			value, err = p.expression()
			a.args = append(a.args, value)
		}
		if err != nil {
			return a, err
		}
		if !p.op(",") {
			return a, p.wantOp(")")
		}
	}
	return a, nil
}

// filtersAndTests reads |filter, is test and calls of their results.
func (p *parser) filtersAndTests(value expr) (expr, error) {
	for {
		line := p.peek().line
		var err error
		switch {
		case p.op("|"):
			value, err = p.filterCall(value)
		case p.word("is"):
			value, err = p.test(line, value)
		case p.op("("):
			var args callArgs
			args, err = p.arguments()
			value = &callExpr{line, value, args}
		default:
			return value, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// filterCall reads a filter's name and arguments.
func (p *parser) filterCall(value expr) (*filterExpr, error) {
	t, err := p.want(tokName, "a filter")
	if err != nil {
		return nil, err
	}
	f := &filterExpr{line: t.line, value: value, name: t.text}
	for p.op(".") {
		more, err := p.name()
		if err != nil {
			return nil, err
		}
		f.name += "." + more
	}
	if p.op("(") {
		f.args, err = p.arguments()
	}
	return f, err
}

// test reads a test after its is. One argument may follow without
// parentheses.
func (p *parser) test(line int, value expr) (expr, error) {
	x := &testExpr{line: line, value: value, negate: p.word("not")}
	t := p.take()
	switch {
	case t.kind == tokName:
		x.name = t.text
	default:
		return nil, p.fail("expected a test")
	}
	next := p.peek()
	switch {
	case p.op("("):
		args, err := p.arguments()
		x.args = args
		return x, err
	case next.kind == tokString, next.kind == tokInt, next.kind == tokFloat,
		next.kind == tokOp && (next.text == "[" || next.text == "{"),
		next.kind == tokName && !p.isWord("else", "or", "and", "is", "if", "in", "not", "recursive"):
		arg, err := p.primary()
		if err != nil {
			return nil, err
		}
		arg, err = p.postfix(arg)
		x.args.args = []expr{arg}
		return x, err
	}
	return x, nil
}
