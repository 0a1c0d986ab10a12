package scaling

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// maxPlan bounds the written form of a plan in bytes.
const maxPlan = 2048

// Parse reads the written form of a plan: a method or a preset, then
// settings, separated by semicolons; or settings alone, from which a method is chosen.
//
//	beam_search;n=16;width=4
//	sc16;early_stop.consensus=0.95
//	quality=0.95;deadline_ms=800
//	best_of_n;n=8;verifier=lutra-tiny-prm;answer.extract="regex:= (\\d+)"
//
// Keys are the keys of Plan.Set. A value in double quotes is read as a Go string,
// so it may hold a semicolon or "\n". Errors are *Errors; sizes and names
// are checked by Validate.
func Parse(s string) (Plan, error) {
	if len(s) > maxPlan {
		return Plan{}, Errorf(CodeValue, "", "the plan is longer than %d bytes", maxPlan)
	}
	method, rest, _ := strings.Cut(s, ";")
	method = strings.TrimSpace(method)
	p, ok := Preset(method)
	if key, _, setting := strings.Cut(method, "="); setting && isAim(strings.TrimSpace(key)) {
		rest = s
	} else if !ok {
		p = Plan{Method: Method(method)}
	}
	seen := map[string]bool{}
	for strings.TrimSpace(rest) != "" {
		var key, value string
		var err error
		if key, value, rest, err = setting(rest); err != nil {
			return Plan{}, err
		}
		if seen[key] && key != "step.stop" && key != "verify.tests" {
			return Plan{}, Errorf(CodeValue, key, "it is given twice")
		}
		seen[key] = true
		if err := p.Set(key, value); err != nil {
			return Plan{}, err
		}
	}
	return p, nil
}

// setting cuts the first key=value off s.
func setting(s string) (key, value, rest string, err error) {
	key, rest, ok := strings.Cut(s, "=")
	key, rest = strings.TrimSpace(key), strings.TrimLeft(rest, " ")
	if !ok || key == "" || strings.Contains(key, ";") {
		return "", "", "", Errorf(CodeValue, "", "expected key=value, but got %.40q", s)
	}
	if strings.HasPrefix(rest, `"`) {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return "", "", "", Errorf(CodeValue, key, "the quotes do not close")
		}
		value, _ = strconv.Unquote(quoted)
		rest = strings.TrimSpace(rest[len(quoted):])
		if rest != "" && rest[0] != ';' {
			return "", "", "", Errorf(CodeValue, key, "a semicolon must follow the quoted value")
		}
		return key, value, strings.TrimPrefix(rest, ";"), nil
	}
	value, rest, _ = strings.Cut(rest, ";")
	return key, strings.TrimSpace(value), rest, nil
}

var presets = regexp.MustCompile(`^(?:(bon|abon|sc|asc|cert|deepconf|pf)([1-9]\d{0,2})|(beam|dvts)([1-9]\d{0,2})x([1-9]\d{0,2})|q([1-9]\d)|auto|none)$`)

// Preset reads a short name of a plan: bon8 (best of n), sc16 (self-consistency), abon8 and asc16 (the same
// in rounds), cert8 (votes weighted by self-certainty), deepconf16, pf16 (particle filtering), beam16x4 and
// dvts16x4 (n and width), q95 (a quality of 0.95), auto, none.
func Preset(name string) (Plan, bool) {
	m := presets.FindStringSubmatch(name)
	if m == nil {
		return Plan{}, false
	}
	// The expression lets no other numbers through.
	n, _ := strconv.Atoi(m[2] + m[4])
	width, _ := strconv.Atoi(m[5])
	switch m[1] + m[3] {
	case "bon":
		return Plan{Method: BestOfN, N: n}, true
	case "sc":
		return Plan{Method: SelfConsistency, N: n}, true
	case "cert":
		return Plan{Method: SelfConsistency, N: n, Verifier: VerifierSelfCertainty}, true
	case "asc":
		return Plan{Method: SelfConsistency, N: n, Adaptive: Adaptive{On: true}}, true
	case "abon":
		return Plan{Method: BestOfN, N: n, Adaptive: Adaptive{On: true}}, true
	case "deepconf":
		return Plan{Method: DeepConfidence, N: n}, true
	case "pf":
		return Plan{Method: ParticleFiltering, N: n}, true
	case "beam":
		return Plan{Method: BeamSearch, N: n, Width: width}, true
	case "dvts":
		return Plan{Method: DVTS, N: n, Width: width}, true
	}
	if percent, err := strconv.Atoi(m[6]); err == nil {
		return Plan{Quality: float64(percent) / 100}, true
	}
	if name == string(None) {
		return Plan{Method: None}, true
	}
	return Plan{Method: Auto, N: AutoN}, true
}

// String returns the short form of a plan that has its defaults, such as an
// Outcome's, for logs and the header that says what was applied.
func (p Plan) String() string {
	switch {
	case p.Method == None:
		return string(None)
	case p.N == AutoN:
		return string(p.Method) + ";n=auto"
	case p.Adaptive.On:
		return fmt.Sprintf("%s;n=%d;adaptive=true", p.Method, p.N)
	case p.hasWidth():
		return fmt.Sprintf("%s;n=%d;width=%d", p.Method, p.N, p.Width)
	}
	return fmt.Sprintf("%s;n=%d", p.Method, p.N)
}
