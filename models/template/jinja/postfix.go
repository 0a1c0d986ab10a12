package jinja

import "strconv"

// parsePostfix reads attributes, subscripts and calls.
func parsePostfix(p *parser, value expr) (expr, error) {
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
			v, err := parseSubscript(p, line, value)
			if err != nil {
				return nil, err
			}
			value = v
		case p.op("("):
			args, err := parseArguments(p)
			if err != nil {
				return nil, err
			}
			value = &callExpr{line, value, args}
		default:
			return value, nil
		}
	}
}

// parseSubscript reads an index or a slice after its bracket.
func parseSubscript(p *parser, line int, value expr) (expr, error) {
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
		e, err := parseTuple(p)
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

// parseArguments reads a call's arguments after its parenthesis.
func parseArguments(p *parser) (a callArgs, err error) {
	for !p.op(")") {
		switch t := p.peek(); {
		case p.op("**"):
			a.kwargs, err = parseExpression(p)
		case p.op("*"):
			a.spread, err = parseExpression(p)
		case t.kind == tokName && p.tokens[p.pos+1].kind == tokOp && p.tokens[p.pos+1].text == "=":
			p.pos += 2
			var value expr
			value, err = parseExpression(p)
			a.names, a.values = append(a.names, t.text), append(a.values, value)
		default:
			if len(a.names) > 0 {
				return a, p.fail("an argument without name follows one with a name")
			}
			var value expr
			value, err = parseExpression(p)
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

// parseFiltersAndTests reads |filter, is test and calls of their results.
func parseFiltersAndTests(p *parser, value expr) (expr, error) {
	for {
		line := p.peek().line
		var err error
		switch {
		case p.op("|"):
			value, err = parseFilterCall(p, value)
		case p.word("is"):
			value, err = parseTest(p, line, value)
		case p.op("("):
			var args callArgs
			args, err = parseArguments(p)
			value = &callExpr{line, value, args}
		default:
			return value, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// parseFilterCall reads a filter's name and arguments.
func parseFilterCall(p *parser, value expr) (*filterExpr, error) {
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
		f.args, err = parseArguments(p)
	}
	return f, err
}

// parseTest reads a test after its is. One argument may follow without
// parentheses.
func parseTest(p *parser, line int, value expr) (expr, error) {
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
		args, err := parseArguments(p)
		x.args = args
		return x, err
	case next.kind == tokString, next.kind == tokInt, next.kind == tokFloat,
		next.kind == tokOp && (next.text == "[" || next.text == "{"),
		next.kind == tokName && !p.isWord("else", "or", "and", "is", "if", "in", "not"):
		arg, err := parsePrimary(p)
		if err != nil {
			return nil, err
		}
		arg, err = parsePostfix(p, arg)
		x.args.args = []expr{arg}
		return x, err
	}
	return x, nil
}
