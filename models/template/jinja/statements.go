package jinja

// parseBody reads statements up to a block that one of ends begins, and takes the
// begin and the word of that block. Without ends it reads to the end.
func parseBody(p *parser, ends ...string) (list []stmt, end string, err error) {
	if err := p.enter(); err != nil {
		return nil, "", err
	}
	defer p.leave()
	for {
		switch t := p.take(); t.kind {
		case tokEOF:
			if len(ends) > 0 {
				return nil, "", p.fail("expected %s", ends[len(ends)-1])
			}
			return list, "", nil
		case tokText:
			list = append(list, textStmt{t.text})
		case tokVarBegin:
			value, err := parseTuple(p)
			if err != nil {
				return nil, "", err
			}
			if _, err := p.want(tokVarEnd, "}}"); err != nil {
				return nil, "", err
			}
			list = append(list, &outputStmt{t.line, value})
		case tokBlockBegin:
			if p.isWord(ends...) {
				return list, p.take().text, nil
			}
			s, err := parseStatement(p)
			if err != nil {
				return nil, "", err
			}
			list = append(list, s)
		default:
			return nil, "", p.fail("unexpected token")
		}
	}
}

// parseBlock reads the rest of a block's head, its body and its end.
func parseBlock(p *parser, end string) ([]stmt, error) {
	if err := p.endBlock(); err != nil {
		return nil, err
	}
	body, _, err := parseBody(p, end)
	if err != nil {
		return nil, err
	}
	return body, p.endBlock()
}

// parseStatement reads a statement from after its {%.
func parseStatement(p *parser) (stmt, error) {
	t, err := p.want(tokName, "a statement")
	if err != nil {
		return nil, err
	}
	switch t.text {
	case "if":
		return parseIf(p, t.line)
	case "for":
		return parseFor(p, t.line)
	case "set":
		return parseSet(p, t.line)
	case "macro":
		return parseMacro(p, t.line)
	case "call":
		return parseCall(p, t.line)
	case "filter":
		return parseFilter(p, t.line)
	case "with":
		return parseWith(p, t.line)
	case "generation":
		body, err := parseBlock(p, "endgeneration")
		return groupStmt{body}, err
	case "break", "continue":
		if p.loops == 0 {
			return nil, p.fail("%s outside a loop", t.text)
		}
		return loopStmt{t.text == "break"}, p.endBlock()
	case "include", "import", "from", "extends", "block":
		return nil, p.fail("%s is not allowed in a chat template", t.text)
	}
	return nil, p.fail("unknown statement %q", t.text)
}

func parseIf(p *parser, line int) (stmt, error) {
	if err := p.enter(); err != nil { // else-if chains nest
		return nil, err
	}
	defer p.leave()
	cond, err := parseExpression(p)
	if err != nil {
		return nil, err
	}
	if err := p.endBlock(); err != nil {
		return nil, err
	}
	s := &ifStmt{line: line, cond: cond}
	then, end, err := parseBody(p, "elif", "else", "endif")
	if err != nil {
		return nil, err
	}
	s.then = then
	switch end {
	case "elif":
		alt, err := parseIf(p, p.peek().line)
		s.alt = []stmt{alt}
		return s, err
	case "else":
		s.alt, err = parseBlock(p, "endif")
		return s, err
	}
	return s, p.endBlock()
}

func parseFor(p *parser, line int) (stmt, error) {
	s := &forStmt{line: line}
	paren := p.op("(")
	for {
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		s.target = append(s.target, name)
		if !p.op(",") {
			break
		}
	}
	if paren {
		if err := p.wantOp(")"); err != nil {
			return nil, err
		}
	}
	if !p.word("in") {
		return nil, p.fail("expected in")
	}
	var err error
	// A conditional expression would swallow the loop's filter.
	if s.iter, err = parseTupleOf(p, parseOr); err != nil {
		return nil, err
	}
	if p.word("if") {
		if s.filter, err = parseExpression(p); err != nil {
			return nil, err
		}
	}
	if err := p.endBlock(); err != nil {
		return nil, err
	}
	p.loops++
	body, end, err := parseBody(p, "else", "endfor")
	p.loops--
	if err != nil {
		return nil, err
	}
	s.body = body
	if end == "else" {
		s.alt, err = parseBlock(p, "endfor")
		return s, err
	}
	return s, p.endBlock()
}

// parseTarget reads a target of set: a name or an attribute of a name.
func parseTarget(p *parser) (expr, error) {
	t, err := p.want(tokName, "a name")
	if err != nil {
		return nil, err
	}
	var target expr = &nameExpr{t.text}
	if p.op(".") {
		attr, err := p.name()
		if err != nil {
			return nil, err
		}
		target = &attrExpr{t.line, target, attr}
	}
	return target, nil
}

func parseSet(p *parser, line int) (stmt, error) {
	s := &setStmt{line: line}
	for {
		target, err := parseTarget(p)
		if err != nil {
			return nil, err
		}
		s.target = append(s.target, target)
		if !p.op(",") {
			break
		}
	}
	if p.op("=") {
		value, err := parseTuple(p)
		if err != nil {
			return nil, err
		}
		s.value = value
		return s, p.endBlock()
	}
	if len(s.target) > 1 {
		return nil, p.fail("expected =")
	}
	filters, err := parseFilters(p)
	if err != nil {
		return nil, err
	}
	body, err := parseBlock(p, "endset")
	return &setBlockStmt{line, s.target[0], filters, body}, err
}

// parseFilters reads any number of |filter.
func parseFilters(p *parser) (list []filterExpr, err error) {
	for p.op("|") {
		f, err := parseFilterCall(p, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, *f)
	}
	return list, nil
}

func parseFilter(p *parser, line int) (stmt, error) {
	first, err := parseFilterCall(p, nil)
	if err != nil {
		return nil, err
	}
	more, err := parseFilters(p)
	if err != nil {
		return nil, err
	}
	body, err := parseBlock(p, "endfilter")
	return &filterStmt{line, append([]filterExpr{*first}, more...), body}, err
}

func parseWith(p *parser, line int) (stmt, error) {
	s := &withStmt{line: line}
	for p.peek().kind == tokName {
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		if err := p.wantOp("="); err != nil {
			return nil, err
		}
		value, err := parseExpression(p)
		if err != nil {
			return nil, err
		}
		s.names, s.values = append(s.names, name), append(s.values, value)
		if !p.op(",") {
			break
		}
	}
	var err error
	s.body, err = parseBlock(p, "endwith")
	return s, err
}
