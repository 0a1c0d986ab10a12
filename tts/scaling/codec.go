package scaling

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Set sets one setting by its key and its value as text. step.stop and verify.tests add one,
// adaptive.step_cost and include are lists with commas; settings of adaptive switch it on.
func (p *Plan) Set(key, value string) error {
	w := written{key: key, value: value}
	p.Read(&w)
	if !w.known {
		return Errorf(CodeValue, "", "there is no setting %.40q", key)
	}
	return w.err
}

// written is a Source of one setting, its value as text.
type written struct {
	key, value string
	known      bool  // there is such a setting
	err        error // an *Error
}

func (w *written) Read(s *Setting, dst any) bool {
	if w.key != s.Key {
		return false
	}
	w.known = true
	err := w.parse(s, dst)
	if err != nil && CodeOf(err) == "" {
		err = Errorf(CodeValue, w.key, "cannot read %.40q", w.value)
	}
	w.err = err
	return err == nil
}

// parse sets dst to the value.
func (w *written) parse(s *Setting, dst any) (err error) {
	switch d := dst.(type) {
	case *string:
		*d = w.value
	case *int:
		if s.Auto && w.value == "auto" {
			*d = AutoN
			return nil
		}
		*d, err = w.count(*d)
	case *time.Duration:
		var ms int
		if ms, err = w.count(0); err == nil {
			*d = time.Duration(ms) * time.Millisecond
		}
	case *float64:
		*d, err = w.number(s, *d)
	case **float32:
		var v float64
		if v, err = strconv.ParseFloat(w.value, 32); err == nil {
			*d = new(float32(v))
		}
	case *bool:
		*d, err = w.boolean(*d)
	case *Negated:
		var on bool
		if on, err = w.boolean(!bool(*d)); err == nil {
			*d = Negated(!on)
		}
	case *[]float64:
		*d, err = w.numbers(*d)
	case *[]string:
		*d = append(*d, w.value)
	case *Delimiters:
		*d = append(*d, w.value)
	case *json.RawMessage:
		*d = json.RawMessage(w.value)
	case *Include:
		for word := range strings.SplitSeq(w.value, ",") {
			if word = strings.TrimSpace(word); word != "" && !d.Add(word) {
				return strconv.ErrSyntax
			}
		}
	}
	return err
}

// number returns the value as a number within a setting's bounds, or what there was before if it is none.
func (w *written) number(s *Setting, before float64) (float64, error) {
	v, err := strconv.ParseFloat(w.value, 64)
	if err == nil && !(v >= s.Lo && v <= s.Hi) {
		err = Errorf(CodeValue, s.Key, "%v is not between %v and %v", v, s.Lo, s.Hi)
	}
	if err != nil {
		return before, err
	}
	return v, nil
}

// numbers returns the value as numbers between commas, or what there was before if it is none.
func (w *written) numbers(before []float64) (list []float64, err error) {
	for word := range strings.SplitSeq(w.value, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil {
			return before, err
		}
		list = append(list, v)
	}
	return list, nil
}

// count returns the value as a count, or what there was before if it is none.
func (w *written) count(before int) (int, error) {
	n, err := strconv.Atoi(w.value)
	if err == nil && (n < 1 || n > MaxCount) {
		err = strconv.ErrRange
	}
	if err != nil {
		return before, err
	}
	return n, nil
}

// boolean returns the value as true or false, or what there was before if it is neither.
func (w *written) boolean(before bool) (bool, error) {
	on, err := strconv.ParseBool(w.value)
	if err != nil {
		return before, err
	}
	return on, nil
}
