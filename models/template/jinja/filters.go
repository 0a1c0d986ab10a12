package jinja

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// applyFilter computes v|name(args). A string is paid for before the filter runs, its
// results by the filter where those can be larger or take longer.
func applyFilter(r *resources, name string, v any, a args) (any, error) {
	if err := r.charge(len(name)); err != nil {
		return nil, err
	}
	f, ok := filters[name]
	if !ok {
		return nil, fmt.Errorf("no filter named %.100q", name)
	}
	if err := r.step(); err != nil {
		return nil, err
	}
	if s, ok := v.(string); ok {
		if err := r.charge(len(s)); err != nil {
			return nil, err
		}
	}
	return f(r, v, a)
}

// filters is filled in init because some filters apply filters.
var filters map[string]filterFunc

func init() {
	filters = map[string]filterFunc{
		"abs":        absFilter,
		"capitalize": textFilter(capitalize),
		"count":      lengthFilter,
		"d":          defaultFilter,
		"default":    defaultFilter,
		"dictsort":   dictSortFilter,
		"e":          textFilter(html.EscapeString),
		"escape":     textFilter(html.EscapeString),
		"first":      firstFilter,
		"float":      floatFilter,
		"format":     formatFilter,
		"indent":     indentFilter,
		"int":        intFilter,
		"items":      itemsFilter,
		"join":       joinFilter,
		"last":       lastFilter,
		"length":     lengthFilter,
		"list":       listFilter,
		"lower":      textFilter(lowerCase),
		"map":        mapFilter,
		"max":        extreme(1),
		"min":        extreme(-1),
		"reject":     selector(false, false),
		"rejectattr": selector(true, false),
		"replace":    replaceFilter,
		"reverse":    reverseFilter,
		"round":      roundFilter,
		"safe":       stringFilter,
		"select":     selector(false, true),
		"selectattr": selector(true, true),
		"sort":       sortFilter,
		"string":     stringFilter,
		"sum":        sumFilter,
		"title":      textFilter(titleCase),
		"tojson":     toJSON,
		"trim":       trimFilter,
		"unique":     uniqueFilter,
		"upper":      textFilter(upperCase),
	}
}

// textFilter applies f to what the value prints as.
func textFilter(f func(string) string) filterFunc {
	return func(r *resources, v any, _ args) (any, error) {
		s, err := toText(r, v)
		if err != nil {
			return nil, err
		}
		return mapper(f)(r, s, args{})
	}
}

func stringFilter(r *resources, v any, _ args) (any, error) { return toText(r, v) }

func trimFilter(r *resources, v any, a args) (any, error) {
	s, err := toText(r, v)
	if err != nil {
		return nil, err
	}
	return stringMethods["strip"](r, s, a)
}

func replaceFilter(r *resources, v any, a args) (any, error) {
	s, err := toText(r, v)
	if err != nil {
		return nil, err
	}
	return replaceText(r, s, a)
}

func formatFilter(r *resources, v any, a args) (any, error) {
	s, err := toText(r, v)
	if err != nil {
		return nil, err
	}
	if len(a.named) > 0 {
		d, err := newDict(r)
		if err != nil {
			return nil, err
		}
		if err := fillDict(r, d, args{names: a.names, named: a.named}); err != nil {
			return nil, err
		}
		return percentFormat(r, s, d)
	}
	return percentFormat(r, s, &List{Items: a.pos, Tuple: true})
}

// indentFilter puts width blanks before each line but the first.
func indentFilter(r *resources, v any, a args) (any, error) {
	s, err := toText(r, v)
	if err != nil {
		return nil, err
	}
	pad, isText := a.get(0, "width", int64(4)).(string)
	width := len(pad)
	if !isText {
		n, err := integer(a.get(0, "width", int64(4)))
		if err != nil {
			return nil, err
		}
		width = min(max(n, 0), maxWidth)
	}
	if width > maxWidth {
		return nil, fmt.Errorf("%w: indentation longer than %d", ErrLimit, maxWidth)
	}
	if err := r.chargeTimes(len(s), 2); err != nil {
		return nil, err
	}
	if err := r.chargeTimes(strings.Count(s, "\n")+1, itemBytes+2*width); err != nil {
		return nil, err
	}
	if !isText {
		pad = strings.Repeat(" ", width)
	}
	lines := strings.Split(s, "\n")
	blank := truth(a.get(2, "blank", false))
	for i, line := range lines {
		if i == 0 && !truth(a.get(1, "first", false)) || i > 0 && line == "" && !blank {
			continue
		}
		lines[i] = pad + line
	}
	return strings.Join(lines, "\n"), nil
}

// defaultFilter returns its argument in place of what is undefined.
func defaultFilter(_ *resources, v any, a args) (any, error) {
	_, missing := v.(undefined)
	if missing || truth(a.get(1, "boolean", false)) && !truth(v) {
		return a.get(0, "default_value", ""), nil
	}
	return v, nil
}

func lengthFilter(r *resources, v any, _ args) (any, error) {
	switch v := v.(type) {
	case string:
		return int64(utf8.RuneCountInString(v)), nil
	case *List:
		return int64(len(v.Items)), nil
	case *Dict:
		return int64(v.Len()), nil
	case undefined:
		return int64(0), nil
	}
	return nil, fmt.Errorf("%s has no length", kindName(v))
}

func absFilter(_ *resources, v any, _ args) (any, error) {
	i, f, isInt, ok := number(v)
	switch {
	case !ok:
		return nil, operandError("abs", v, v)
	case !isInt:
		return math.Abs(f), nil
	case i < 0:
		return sign("-", i)
	}
	return i, nil
}

func intFilter(r *resources, v any, a args) (any, error) {
	def := a.get(0, "default", int64(0))
	if s, ok := v.(string); ok {
		if err := r.chargeTimes(len(s), 4); err != nil { // what is no number is copied into errors
			return nil, err
		}
		s = strings.TrimSpace(s)
		base, err := integer(a.get(1, "base", int64(10)))
		if err != nil || base < 2 || base > 36 {
			return def, nil
		}
		if prefix, ok := map[int]string{16: "0x", 8: "0o", 2: "0b"}[base]; ok {
			s = strings.TrimPrefix(strings.ToLower(s), prefix)
		}
		if i, err := strconv.ParseInt(s, base, 64); err == nil {
			return i, nil
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return def, nil
		}
		v = f
	}
	i, f, isInt, ok := number(v)
	switch {
	case isInt:
		return i, nil
	case !ok || math.IsNaN(f) || math.Abs(f) >= 1<<63:
		return def, nil
	}
	return int64(f), nil
}

func floatFilter(r *resources, v any, a args) (any, error) {
	if s, ok := v.(string); ok {
		if err := r.chargeTimes(len(s), 4); err != nil {
			return nil, err
		}
		if f, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return f, nil
		}
	}
	if _, f, _, ok := number(v); ok {
		return f, nil
	}
	return a.get(0, "default", 0.0), nil
}

func roundFilter(_ *resources, v any, a args) (any, error) {
	_, f, _, ok := number(v)
	if !ok {
		return nil, operandError("round", v, v)
	}
	precision, err := integer(a.get(0, "precision", int64(0)))
	if err != nil {
		return nil, err
	}
	scale := math.Pow(10, float64(precision))
	switch method := a.get(1, "method", "common"); method {
	case "common":
		if precision >= 0 && precision <= 300 {
			// The shortest way to Python's correctly rounded result.
			return strconv.ParseFloat(strconv.FormatFloat(f, 'f', precision, 64), 64)
		}
		return math.RoundToEven(f*scale) / scale, nil
	case "ceil":
		return math.Ceil(f*scale) / scale, nil
	case "floor":
		return math.Floor(f*scale) / scale, nil
	}
	return nil, fmt.Errorf("unknown way to round")
}
