package jinja

// Statements.
type (
	textStmt   struct{ text string }
	outputStmt struct {
		line  int
		value expr
	}
	ifStmt struct {
		line      int
		cond      expr
		then, alt []stmt
	}
	forStmt struct {
		line      int
		target    []string // names that an element is unpacked into, or the one that gets it
		iter      expr
		filter    expr // nil for none
		body, alt []stmt
	}
	setStmt struct {
		line   int
		target []expr // nameExpr or attrExpr
		value  expr
	}
	setBlockStmt struct {
		line    int
		target  expr
		filters []filterExpr // applied to the text in turn; their value field is not used
		body    []stmt
	}
	filterStmt struct {
		line    int
		filters []filterExpr
		body    []stmt
	}
	withStmt struct {
		line   int
		names  []string
		values []expr
		body   []stmt
	}
	macroStmt struct {
		line     int
		name     string
		params   []string
		defaults []expr // of the last params
		body     []stmt
	}
	callStmt struct {
		line int
		call *callExpr
		body *macroStmt // what caller() runs
	}
	groupStmt struct{ body []stmt } // a block without effect of its own
	loopStmt  struct{ brk bool }    // break or continue
)

// Expressions.
type (
	constExpr struct{ value any }
	nameExpr  struct{ name string }
	attrExpr  struct { // value.name
		line  int
		value expr
		name  string
	}
	itemExpr struct { // value[key]
		line       int
		value, key expr
	}
	sliceExpr struct { // value[lo:hi:step], any of them nil
		line         int
		value        expr
		lo, hi, step expr
	}
	callExpr struct {
		line int
		fn   expr
		args callArgs
	}
	callArgs struct {
		args   []expr
		names  []string // of values
		values []expr
		spread expr // *args
		kwargs expr // **kwargs
	}
	filterExpr struct {
		line  int
		value expr
		name  string
		args  callArgs
	}
	testExpr struct {
		line   int
		value  expr
		name   string
		args   callArgs
		negate bool
	}
	unaryExpr struct {
		line  int
		op    string // - + not
		value expr
	}
	binaryExpr struct {
		line        int
		op          string // arithmetic, ~ and or
		left, right expr
	}
	compareExpr struct { // first ops[0] rest[0] ops[1] rest[1] ...
		line  int
		first expr
		ops   []string
		rest  []expr
	}
	condExpr struct {
		line            int
		cond, then, alt expr // alt may be nil
	}
	listExpr struct {
		items []expr
		tuple bool
	}
	dictExpr struct {
		line         int
		keys, values []expr
	}
)
