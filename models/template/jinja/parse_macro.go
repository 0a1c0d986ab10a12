package jinja

// parseParams reads the parameters of a macro after its opening parenthesis.
func parseParams(p *parser, m *macroStmt) error {
	for !p.op(")") {
		name, err := p.name()
		if err != nil {
			return err
		}
		m.params = append(m.params, name)
		if p.op("=") {
			def, err := parseExpression(p)
			if err != nil {
				return err
			}
			m.defaults = append(m.defaults, def)
		} else if len(m.defaults) > 0 {
			return p.fail("parameter %s needs a default, like the one before it", name)
		}
		if !p.op(",") {
			return p.wantOp(")")
		}
	}
	return nil
}

// parseMacroBody reads the body of a macro, within which no outer loop is left.
func parseMacroBody(p *parser, end string) ([]stmt, error) {
	loops := p.loops
	p.loops = 0
	defer func() { p.loops = loops }()
	return parseBlock(p, end)
}

func parseMacro(p *parser, line int) (stmt, error) {
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	m := &macroStmt{line: line, name: name}
	if err := p.wantOp("("); err != nil {
		return nil, err
	}
	if err := parseParams(p, m); err != nil {
		return nil, err
	}
	m.body, err = parseMacroBody(p, "endmacro")
	return m, err
}

func parseCall(p *parser, line int) (stmt, error) {
	m := &macroStmt{line: line, name: "caller"}
	if p.op("(") {
		if err := parseParams(p, m); err != nil {
			return nil, err
		}
	}
	value, err := parseExpression(p)
	if err != nil {
		return nil, err
	}
	c, ok := value.(*callExpr)
	if !ok {
		return nil, p.fail("call needs a call of a macro")
	}
	m.body, err = parseMacroBody(p, "endcall")
	return &callStmt{line, c, m}, err
}
