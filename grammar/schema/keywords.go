package schema

import "fmt"

// keyword is a member of a schema.
type keyword struct {
	of    *value // the schema
	name  string
	value *value
}

// fault returns the error of a value of the wrong type.
func (k keyword) fault() error { return fmt.Errorf("%s: it has the wrong type", k.name) }

// meaning says what a keyword demands, and what fails it. One that has none is an annotation.
type meaning struct {
	// assert lists the ways to meet a keyword that says by itself what it demands of a value.
	assert func(c *solver, k keyword) (alternatives, error)
	// apply lists the ways to meet one that applies schemas to the value itself; nil: it
	// demands nothing. context holds the assertions of the schema's keywords.
	apply func(c *solver, k keyword, context alternatives) (alternatives, error)
	// negate lists the ways to fail it, once it has been asserted without an error; nil: the
	// complement is not supported.
	negate func(c *solver, k keyword) (alternatives, error)
}

// keywords holds the keywords that mean something.
var keywords map[string]meaning

// refused are keywords that would mean something to others.
var refused = []string{"$dynamicRef", "$recursiveRef", "$recursiveAnchor", "$vocabulary", "extends", "disallow", "divisibleBy"}

// neverFails is for keywords that cannot fail, or fail with another alone.
func neverFails(*solver, keyword) (alternatives, error) { return nil, nil }

func init() { // schemas within schemas lead back here
	keywords = map[string]meaning{
		"type":  {assert: assertType, negate: negateType},
		"const": {assert: assertConst, negate: func(c *solver, k keyword) (alternatives, error) { return c.otherThan([]*value{k.value}) }},
		"enum":  {assert: assertEnum, negate: func(c *solver, k keyword) (alternatives, error) { return c.otherThan(k.value.items) }},

		"minimum":          {assert: assertBound, negate: negateBound},
		"maximum":          {assert: assertBound, negate: negateBound},
		"exclusiveMinimum": {assert: assertBound, negate: negateBound},
		"exclusiveMaximum": {assert: assertBound, negate: negateBound},
		"multipleOf":       {assert: assertMultiple, negate: negateMultiple},

		"minLength": characters.from(),
		"maxLength": characters.to(),
		"pattern":   {assert: assertPattern, negate: negatePattern},
		"format":    {assert: assertFormat, negate: negateFormat},

		"prefixItems":      {assert: assertItems, negate: negatePrefix},
		"items":            {assert: assertItems, negate: negateItems},
		"additionalItems":  {assert: assertItems, negate: negateAdditionalItems},
		"minItems":         items.from(),
		"maxItems":         items.to(),
		"uniqueItems":      {assert: assertUnique, negate: negateUnique},
		"contains":         {assert: assertContains, negate: negateContains},
		"minContains":      {assert: assertContains, negate: neverFails}, // belong to contains
		"maxContains":      {assert: assertContains, negate: neverFails},
		"unevaluatedItems": {}, // read after all others

		"properties":            {assert: assertProperties, negate: negateProperties},
		"patternProperties":     {assert: assertProperties, negate: negatePatterns},
		"additionalProperties":  {assert: assertProperties, negate: negateAdditional},
		"propertyNames":         {assert: assertNames, negate: negateNames},
		"required":              {assert: assertRequired, negate: negateRequired},
		"minProperties":         properties.from(),
		"maxProperties":         properties.to(),
		"dependentRequired":     {apply: applyDependencies, negate: negateDependencies},
		"dependentSchemas":      {apply: applyDependencies, negate: negateDependencies},
		"dependencies":          {apply: applyDependencies, negate: negateDependencies},
		"unevaluatedProperties": {}, // read after all others

		"$ref":  {apply: applyRef, negate: negateRef},
		"allOf": {apply: applyAll, negate: negateAll},
		"anyOf": {apply: applyAny, negate: negateAny},
		"oneOf": {apply: applyOne, negate: negateOne},
		"not":   {apply: applyNot, negate: negateNot},
		"if":    {apply: applyIf, negate: negateIf}, // with then and else
	}
	for _, name := range refused {
		keywords[name] = meaning{assert: func(_ *solver, k keyword) (alternatives, error) {
			return nil, fmt.Errorf("%s: the keyword is not supported", k.name)
		}}
	}
}

// assert lists the ways to meet all keywords of a schema.
func (c *solver) assert(v *value) (alternatives, error) {
	factors := make([]alternatives, len(v.members))
	context := alternatives{anything()}
	for i, m := range v.members { // those that hold no schemas for the same value
		if k := keywords[m.name]; k.assert != nil {
			var err error
			if factors[i], err = k.assert(c, keyword{v, m.name, m.value}); err != nil {
				return nil, err
			}
			if context, err = c.times(context, factors[i]); err != nil {
				return nil, err
			}
		}
	}
	out := alternatives{anything()}
	for i, m := range v.members {
		var err error
		if k := keywords[m.name]; k.apply != nil {
			if factors[i], err = k.apply(c, keyword{v, m.name, m.value}, context); err != nil {
				return nil, err
			}
		}
		if factors[i] == nil {
			continue
		}
		if out, err = c.times(out, factors[i]); err != nil {
			return nil, err
		}
	}
	return c.unevaluated(v, out)
}

// negate lists the ways not to meet a schema: to fail one of its keywords.
func (c *solver) negate(v *value) (alternatives, error) {
	out := alternatives{}
	for _, m := range v.members {
		w, err := c.negateKeyword(keyword{v, m.name, m.value})
		if err != nil {
			return nil, err
		}
		out = append(out, w...)
	}
	if len(out) > mostWays {
		return nil, fmt.Errorf("there are more than %d alternatives", mostWays)
	}
	return out, nil
}

// negateKeyword lists the ways to fail one keyword.
func (c *solver) negateKeyword(k keyword) (alternatives, error) {
	m, ok := keywords[k.name]
	if !ok {
		return nil, nil
	}
	if m.assert != nil {
		if _, err := m.assert(c, k); err != nil {
			return nil, err
		}
	}
	if m.negate == nil {
		return nil, k.noComplement()
	}
	return m.negate(c, k)
}

func (k keyword) noComplement() error {
	return fmt.Errorf("the complement of %s is not supported", k.name)
}
