// Command operands has a table of the memory that each operation of the device reads and writes. Of it the command writes
// the checks in Go and in C, the lists of arguments in the contract, and a table for people: `go generate ./hexagon/device`.
package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

func main() {
	for file, text := range made(".", os.ReadFile) {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// made returns the files that the table makes, from the folder of package device.
func made(device string, read func(string) ([]byte, error)) map[string][]byte {
	protocol := filepath.Join(device, "protocol.go")
	contract, err := read(protocol)
	if err != nil {
		log.Fatal(err)
	}
	return map[string][]byte{
		filepath.Join(device, "operations.go"):                    inGo(),
		filepath.Join(device, "../dsp/dispatch/operations.c"):     inC(),
		filepath.Join(device, "../dsp/dispatch/operations.h"):     numbers(),
		filepath.Join(device, "../../docs/data/npu-operands.csv"): forPeople(),
		protocol: arguments(contract),
	}
}

// A language writes expressions.
type language struct {
	names func(string) string
	calls map[string]string // what has functions of its own
}

// write writes an expression in it. Operands of an operator that are other operators' stand in parentheses, so that
// precedence is not the language's.
func (l language) write(expression string) string { return l.of(parsed(expression), token.ILLEGAL) }

// nothing stands for no expression.
const nothing = "nothing"

func parsed(expression string) ast.Expr {
	e, err := parser.ParseExpr(cmp.Or(expression, nothing))
	if err != nil {
		log.Fatalf("%s: %v", expression, err)
	}
	return e
}

func (l language) of(e ast.Expr, inside token.Token) string {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return l.of(e.X, inside)
	case *ast.Ident:
		return l.names(e.Name)
	case *ast.BasicLit:
		return e.Value
	case *ast.BinaryExpr:
		right := e.Op // of what is on the right a parenthesis is kept, but for what may be done in any order
		if e.Op != token.LAND && e.Op != token.LOR && e.Op != token.ADD && e.Op != token.MUL {
			right = token.COMMA
		}
		s := l.of(e.X, e.Op) + " " + e.Op.String() + " " + l.of(e.Y, right)
		if inside != token.ILLEGAL && inside != e.Op {
			return "(" + s + ")"
		}
		return s
	case *ast.UnaryExpr:
		return e.Op.String() + l.of(e.X, e.Op)
	case *ast.CallExpr:
		if call := l.calls[e.Fun.(*ast.Ident).Name]; call != "" {
			return call
		}
		var args []string
		for _, a := range e.Args {
			args = append(args, l.of(a, token.ILLEGAL))
		}
		return l.names(e.Fun.(*ast.Ident).Name) + "(" + strings.Join(args, ", ") + ")"
	}
	log.Fatalf("no expression of the table: %T", e)
	return ""
}

var first = regexp.MustCompile(`^\w+`)

// names are the names of an operation's arguments, in their order.
func (op operation) names() (names []string) {
	if op.args == "" {
		return nil
	}
	for arg := range strings.SplitSeq(op.args, ", ") {
		names = append(names, first.FindString(strings.TrimSpace(arg)))
	}
	return slices.DeleteFunc(names, func(s string) bool { return s == "finite" }) // "(fp16 bits, finite)"
}

// arg is the number of an argument.
func (op operation) arg(name string) int {
	i := slices.Index(op.names(), name)
	if i < 0 {
		log.Fatalf("%s has no argument %s", op.name, name)
	}
	return i
}

// stated are the conditions on sizes, with the conditions on rows.
func (op operation) stated() string {
	conditions := []string{op.sizes}
	for _, o := range op.operands {
		if o.floats {
			conditions = append(conditions, o.stride+"%Align == 0 && "+o.stride+" <= MaxStride && "+o.bytes+" <= "+o.stride)
		}
	}
	var once []string
	for _, c := range each(parsed(all(conditions...))) {
		if !slices.Contains(once, c) {
			once = append(once, c)
		}
	}
	return all(once...)
}

// each are the conditions that all must hold for an expression to.
func each(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return each(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.LAND {
			return append(each(e.X), each(e.Y)...)
		}
	case *ast.Ident:
		if e.Name == nothing {
			return nil
		}
	}
	return []string{language{names: func(s string) string { return s }}.of(e, token.ILLEGAL)}
}

// used says whether expressions of an operation have a name.
func (op operation) used(name string) bool {
	texts := []string{op.numbers, op.stated()}
	for _, l := range op.lets {
		texts = append(texts, l.is)
	}
	for _, o := range op.operands {
		texts = append(texts, o.bytes, o.rows, o.stride, o.when)
	}
	return regexp.MustCompile(`\b` + name + `\b`).MatchString(strings.Join(texts, " "))
}

// span is the expression of an operand's bytes, from its first to its last.
func (o operand) span() string {
	if o.rows == "" {
		return o.bytes
	}
	return "(" + o.rows + "-1)*" + o.stride + " + " + o.bytes
}

func (o operand) rule() string {
	align := o.align
	if align == "" {
		align = "Align"
	}
	return align + o.rules
}

const header = "// Code generated by hexagon/device/operands. DO NOT EDIT.\n\n"

// elsewhere are constants of other packages.
var elsewhere = map[string]string{"TileBytes": "layout.TileBytes", "ByteZero": "layout.ByteZero", "GLUErfAlone": "ref.GLUErfAlone", "GLUClamped": "ref.GLUClamped"}

func inGo() []byte {
	l := language{names: func(name string) string {
		if e, ok := elsewhere[name]; ok {
			return e
		}
		return name
	}}
	var b bytes.Buffer
	b.WriteString(header + "package device\n\nimport (\n\"github.com/lutra-lm/lutra/hexagon/layout\"\n\"github.com/lutra-lm/lutra/hexagon/ref\"\n)\n\n")
	b.WriteString("// operations list an operation's operands, if its other arguments are right.\nvar operations = [numOps]func(a *[15]uint32, o *Operands) Status{\n")
	for _, op := range operations {
		fmt.Fprintf(&b, "Op%s: func(a *[15]uint32, o *Operands) Status {\n", op.name)
		for i, name := range op.names() {
			if op.used(name) {
				fmt.Fprintf(&b, "%s := uint64(a[%d])\n", name, i)
			}
		}
		for _, let := range op.lets {
			fmt.Fprintf(&b, "%s := %s\n", let.name, l.write(let.is))
		}
		if op.numbers != "" {
			fmt.Fprintf(&b, "if !(%s) { return StatusNumber }\n", l.write(op.numbers))
		}
		if s := op.stated(); s != "" {
			fmt.Fprintf(&b, "if !(%s) { return StatusSize }\n", l.write(s))
		}
		for i, o := range op.operands {
			at := "TCMBytes"
			if o.arg != "" {
				at = fmt.Sprintf("a[%d]", op.arg(o.arg))
			}
			rows, bytes, stride := "1", o.bytes, "0"
			if o.rows != "" {
				rows, stride = o.rows, o.stride
			}
			call := fmt.Sprintf("o.add(%d, %q, %s, %s, %s, %s, %s)\n", i, o.arg, at, l.write(rows), strings.Replace(l.write(bytes), "size", "o.size", 1), l.write(stride), l.write(o.rule()))
			if o.when != "" {
				call = fmt.Sprintf("if %s {\n%s}\n", l.write(o.when), call)
			}
			b.WriteString(call)
		}
		b.WriteString("return StatusOK\n},\n")
	}
	b.WriteString("}\n")
	text, err := format.Source(b.Bytes())
	if err != nil {
		log.Fatalf("%v\n%s", err, b.Bytes())
	}
	return text
}

// inCAre names that C has otherwise.
var inCAre = map[string]string{"BytePlanes": "PLANES", "MaxStrips": "GEMV_STRIPS", "ByteLanesBytes": "LANES_BYTES", "tableBytes": "table", "tableStride": "table_row", "size": "size"}

// snake is a name as C has it; constants are in capitals.
func snake(name string) string {
	if c, ok := inCAre[name]; ok {
		return c
	}
	if len(name) == 1 {
		return name
	}
	var b strings.Builder
	r := []rune(name)
	for i, c := range r {
		if i > 0 && unicode.IsUpper(c) && (unicode.IsLower(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(c)
	}
	if unicode.IsUpper(r[0]) {
		return strings.ToUpper(b.String())
	}
	return strings.ToLower(b.String())
}

func inC() []byte {
	l := language{snake, map[string]string{"gemvScratch": "gemv_scratch(a)"}}
	var b bytes.Buffer
	b.WriteString(header + "#include \"operands.h\"\n\nuint32_t operands_of(const struct packet *p, uint64_t size, struct operands *o) {\n  const uint32_t *a = p->args;\n  o->size = size, o->status = STATUS_OK, o->n = 0;\n  switch (p->op) {\n")
	for _, op := range operations {
		fmt.Fprintf(&b, "  case OP_%s: {\n", snakeOp(op.name))
		for i, name := range op.names() {
			if op.used(name) {
				fmt.Fprintf(&b, "    const uint64_t %s = a[%d];\n", snake(name), i)
			}
		}
		for _, let := range op.lets {
			fmt.Fprintf(&b, "    const uint64_t %s = %s;\n", snake(let.name), l.write(let.is))
		}
		if op.numbers != "" {
			fmt.Fprintf(&b, "    if (!(%s)) return STATUS_NUMBER;\n", l.write(op.numbers))
		}
		if s := op.stated(); s != "" {
			fmt.Fprintf(&b, "    if (!(%s)) return STATUS_SIZE;\n", l.write(s))
		}
		for i, o := range op.operands {
			at := "TCM_BYTES"
			if o.arg != "" {
				at = fmt.Sprintf("a[%d]", op.arg(o.arg))
			}
			call := fmt.Sprintf("operand(o, %d, %s, %s, %s);\n", i, at, l.write(o.span()), l.write(strings.NewReplacer(" | Scratch", "", " | Streamed", "").Replace(o.rule())))
			if o.when != "" {
				call = fmt.Sprintf("if (%s) %s", l.write(o.when), call)
			}
			b.WriteString("    " + call)
		}
		b.WriteString("    return o->status;\n  }\n")
	}
	b.WriteString("  }\n  return STATUS_OP;\n}\n")
	return b.Bytes()
}

// numbers are the operands' in C.
func numbers() []byte {
	var b bytes.Buffer
	b.WriteString(header + "#pragma once\n#include \"dispatch.h\"\n\n// Numbers of operands.\nenum {\n")
	for _, op := range operations {
		for i, o := range op.operands {
			if o.arg != "" {
				fmt.Fprintf(&b, "  OF_%s_%s = %d,\n", snakeOp(op.name), strings.ToUpper(snake(o.arg)), i)
			}
		}
	}
	b.WriteString("};\n")
	return b.Bytes()
}

// snakeOp is an operation's name in C.
func snakeOp(name string) string {
	return map[string]string{"GEMV": "GEMV", "VLUT16": "VLUT16", "GLU": "GLU"}[name] + map[bool]string{true: "", false: strings.ToUpper(snake(name))}[name == "GEMV" || name == "VLUT16" || name == "GLU"]
}

// forPeople is a table of all operands.
func forPeople() []byte {
	b := bytes.NewBufferString("# what packets of each operation read and write\n# machine: none\n# command: go generate ./hexagon/device\n# date: 2026-11-30\n")
	w := csv.NewWriter(b)
	_ = w.Write([]string{"operation", "operand", "bytes", "only if", "aligned to", "memory", "access"})
	for _, op := range operations {
		for _, o := range op.operands {
			arg, memory, access := o.arg, "any", "read"
			if arg == "" {
				arg = "pieces"
			}
			if strings.Contains(o.rules, inTCM) {
				memory = "TCM"
			} else if strings.Contains(o.rules, inDDR) {
				memory = "DDR"
			}
			if strings.Contains(o.rules, scratch) {
				access = "scratch"
			} else if strings.Contains(o.rules, writes) {
				access = "written"
			}
			if strings.Contains(o.rules, apart) {
				access += ", apart from " + op.operands[0].arg
			}
			if strings.Contains(o.rules, inOrder) {
				access += ", in order"
			}
			if strings.Contains(o.rules, streamed) {
				access += ", past the caches"
			}
			_ = w.Write([]string{op.name, arg, o.span(), o.when, strings.Split(o.rule(), " ")[0], memory, access})
		}
	}
	w.Flush()
	return b.Bytes()
}

// arguments puts the table's lists of arguments into the contract: the last indented lines before an operation's name.
func arguments(contract []byte) []byte {
	lines := strings.Split(string(contract), "\n")
	for _, op := range operations {
		if op.args == "" {
			continue
		}
		at := slices.IndexFunc(lines, func(s string) bool { return s == "\tOp"+op.name })
		if at < 0 {
			log.Fatalf("the contract has no Op%s", op.name)
		}
		end := at
		for ; !strings.HasPrefix(lines[end-1], "\t//\t"); end-- {
			if !strings.HasPrefix(lines[end-1], "\t//") {
				log.Fatalf("the contract has no arguments of Op%s", op.name)
			}
		}
		begin := end
		for ; strings.HasPrefix(lines[begin-1], "\t//\t"); begin-- {
		}
		lines = slices.Replace(lines, begin, end, wrapped(op.args)...)
	}
	return []byte(strings.Join(lines, "\n"))
}

func wrapped(args string) (lines []string) {
	line := "\t//\t"
	for arg := range strings.SplitAfterSeq(args, ", ") {
		if len(line)+len(arg) > 120 {
			lines, line = append(lines, strings.TrimRight(line, " ")), "\t//\t"
		}
		line += arg
	}
	return append(lines, line)
}
