package scaling

import "encoding/json"

// Verify says how answers are checked without a model: by one of its ways.
type Verify struct {
	// Tests are run after the code of an answer, which is in Language: the score is the share that pass.
	Language string
	Tests    []string
	// Schema is a JSON Schema that the answer's JSON is to match.
	Schema json.RawMessage
	// Pattern is a regular expression (RE2) that is to match in the final answer.
	Pattern string
	// Arithmetic computes the equations of an answer again: the score is the share that hold.
	Arithmetic bool
}

// The ways to verify.
const (
	VerifyTests      = "tests"
	VerifySchema     = "json_schema"
	VerifyPattern    = "pattern"
	VerifyArithmetic = "arithmetic"
)

// kinds returns the ways that are asked for.
func (v *Verify) kinds() (kinds []string) {
	for _, k := range []struct {
		name string
		on   bool
	}{{VerifyTests, v.Language != "" || v.Tests != nil}, {VerifySchema, v.Schema != nil}, {VerifyPattern, v.Pattern != ""}, {VerifyArithmetic, v.Arithmetic}} {
		if k.on {
			kinds = append(kinds, k.name)
		}
	}
	return kinds
}

// Kind returns the way that is asked for; empty: none.
func (v *Verify) Kind() string {
	if kinds := v.kinds(); len(kinds) > 0 {
		return kinds[0]
	}
	return ""
}

// Bounds of what a request brings to verify with.
const (
	mostTests     = 64
	mostTest      = 8 << 10  // bytes of a test
	mostTestsText = 64 << 10 // of all
	mostSchema    = 64 << 10
)

// validateVerify checks what depends on no interpreter and no compiler.
func (p *Plan) validateVerify() error {
	v := &p.Verify
	kinds := v.kinds()
	if len(kinds) == 0 {
		return nil
	}
	bytes := 0
	for _, test := range v.Tests {
		if bytes += len(test); len(test) > mostTest || test == "" {
			return Errorf(CodeValue, "verify.tests", "a test has 1 to %d bytes", mostTest)
		}
	}
	switch kind := kinds[0]; {
	case len(kinds) > 1:
		return Errorf(CodeValue, "verify."+kinds[1], "answers are verified in one way, and %s is one already", kind)
	case kind == VerifyTests && v.Language == "":
		return Errorf(CodeValue, "verify.language", "tests need the language that they are in")
	case kind == VerifyTests && len(v.Tests) == 0:
		return Errorf(CodeValue, "verify.tests", "there are no tests")
	case len(v.Tests) > mostTests || bytes > mostTestsText:
		return Errorf(CodeValue, "verify.tests", "at most %d tests of %d bytes together are allowed", mostTests, mostTestsText)
	case len(v.Schema) > mostSchema:
		return Errorf(CodeValue, "verify.json_schema", "it has %d bytes, at most %d are read", len(v.Schema), mostSchema)
	case p.Method == DeepConfidence:
		return Errorf(CodeValue, "verify", "deepconf judges by the tokens' own probabilities; leave it out")
	case p.Verifier != "":
		return Errorf(CodeValue, "verify", "it takes the place of the verifier %.80q; leave one of them out", p.Verifier)
	case p.Stepwise() && kind != VerifyArithmetic:
		return Errorf(CodeValue, "verify."+kind, "it judges whole answers, and %s judges solution steps", p.Method)
	}
	return nil
}
