package jinja

// body reads statements up to a block that one of ends begins, and takes the
// begin and the word of that block. Without ends it reads to the end.
func (p *parser) body(ends ...string) (list []stmt, end string, err error) {
	if err := p.enter(); err != nil {
		return nil, "", err
	}
	defer func() { p.depth-- }()
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
			value, err := p.tuple()
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
			s, err := p.statement()
			if err != nil {
				return nil, "", err
			}
			list = append(list, s)
		default:
			return nil, "", p.fail("unexpected token")
		}
	}
}

// block reads the rest of a block's head, its body and its end.
func (p *parser) block(end string) ([]stmt, error) {
	if err := p.endBlock(); err != nil {
		return nil, err
	}
	body, _, err := p.body(end)
	if err != nil {
		return nil, err
	}
	return body, p.endBlock()
}

// statement reads a statement from after its {%.
func (p *parser) statement() (stmt, error) {
	t, err := p.want(tokName, "a statement")
	if err != nil {
		return nil, err
	}
	switch t.text {
	case "if":
		return p.ifStmt(t.line)
	case "for":
		return p.forStmt(t.line)
	case "set":
		return p.setStmt(t.line)
	case "macro":
		return p.macro(t.line)
	case "call":
		return p.call(t.line)
	case "filter":
		return p.filter(t.line)
	case "with":
		return p.with(t.line)
	case "generation":
		body, err := p.block("endgeneration")
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

func (p *parser) ifStmt(line int) (stmt, error) {
	if err := p.enter(); err != nil { // else-if chains nest
		return nil, err
	}
	defer func() { p.depth-- }()
	cond, err := p.expression()
	if err != nil {
		return nil, err
	}
	if err := p.endBlock(); err != nil {
		return nil, err
	}
	s := &ifStmt{line: line, cond: cond}
	then, end, err := p.body("elif", "else", "endif")
	if err != nil {
		return nil, err
	}
	s.then = then
	switch end {
	case "elif":
		alt, err := p.ifStmt(p.peek().line)
		s.alt = []stmt{alt}
		return s, err
	case "else":
		s.alt, err = p.block("endif")
		return s, err
	}
	return s, p.endBlock()
}

func (p *parser) forStmt(line int) (stmt, error) {
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
	if s.iter, err = p.tupleOf(p.or); err != nil {
		return nil, err
	}
	if p.word("if") {
		if s.filter, err = p.expression(); err != nil {
			return nil, err
		}
	}
	if err := p.endBlock(); err != nil {
		return nil, err
	}
	p.loops++
	body, end, err := p.body("else", "endfor")
	p.loops--
	if err != nil {
		return nil, err
	}
	s.body = body
	if end == "else" {
		s.alt, err = p.block("endfor")
		return s, err
	}
	return s, p.endBlock()
}

// assignable reads a target of set: a name or an attribute of a name.
func (p *parser) assignable() (expr, error) {
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

func (p *parser) setStmt(line int) (stmt, error) {
	s := &setStmt{line: line}
	for {
		target, err := p.assignable()
		if err != nil {
			return nil, err
		}
		s.target = append(s.target, target)
		if !p.op(",") {
			break
		}
	}
	if p.op("=") {
		value, err := p.tuple()
		if err != nil {
			return nil, err
		}
		s.value = value
		return s, p.endBlock()
	}
	if len(s.target) > 1 {
		return nil, p.fail("expected =")
	}
	filters, err := p.filters()
	if err != nil {
		return nil, err
	}
	body, err := p.block("endset")
	return &setBlockStmt{line, s.target[0], filters, body}, err
}

// filters reads any number of |filter.
func (p *parser) filters() (list []filterExpr, err error) {
	for p.op("|") {
		f, err := p.filterCall(nil)
		if err != nil {
			return nil, err
		}
		list = append(list, *f)
	}
	return list, nil
}

func (p *parser) filter(line int) (stmt, error) {
	first, err := p.filterCall(nil)
	if err != nil {
		return nil, err
	}
	more, err := p.filters()
	if err != nil {
		return nil, err
	}
	body, err := p.block("endfilter")
	return &filterStmt{line, append([]filterExpr{*first}, more...), body}, err
}

func (p *parser) with(line int) (stmt, error) {
	s := &withStmt{line: line}
	for p.peek().kind == tokName {
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		if err := p.wantOp("="); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		s.names, s.values = append(s.names, name), append(s.values, value)
		if !p.op(",") {
			break
		}
	}
	var err error
	s.body, err = p.block("endwith")
	return s, err
}
