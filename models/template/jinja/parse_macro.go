package jinja

// params reads the parameters of a macro after its opening parenthesis.
func (p *parser) params(m *macroStmt) error {
	for !p.op(")") {
		name, err := p.name()
		if err != nil {
			return err
		}
		m.params = append(m.params, name)
		if p.op("=") {
			def, err := p.expression()
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

// macroBody reads the body of a macro, within which no outer loop is left.
func (p *parser) macroBody(end string) ([]stmt, error) {
	loops := p.loops
	p.loops = 0
	defer func() { p.loops = loops }()
	return p.block(end)
}

func (p *parser) macro(line int) (stmt, error) {
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	m := &macroStmt{line: line, name: name}
	if err := p.wantOp("("); err != nil {
		return nil, err
	}
	if err := p.params(m); err != nil {
		return nil, err
	}
	m.body, err = p.macroBody("endmacro")
	return m, err
}

func (p *parser) call(line int) (stmt, error) {
	m := &macroStmt{line: line, name: "caller"}
	if p.op("(") {
		if err := p.params(m); err != nil {
			return nil, err
		}
	}
	value, err := p.expression()
	if err != nil {
		return nil, err
	}
	c, ok := value.(*callExpr)
	if !ok {
		return nil, p.fail("call needs a call of a macro")
	}
	m.body, err = p.macroBody("endcall")
	return &callStmt{line, c, m}, err
}
