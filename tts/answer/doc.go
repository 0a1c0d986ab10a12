// Package answer finds the final answer in a solution's text and reports which
// answers are the same.
//
//	text ──Extract──▶ "\frac{1}{2}" ──Normalize──▶ key "#1/2" ◀── "0.5", "50%", "2/4"
//
// Answers with one key are equal, so grouping is transitive and votes can be
// counted with a map. Numbers are exact rationals, never floats; formulas are
// sums of rationals times square roots and names; lists, intervals, tuples and
// matrices are made of the keys of their parts. What is none of these is text.
// All of it is linear or nearly so in the text's length, whatever a model wrote:
// what is read as mathematics is bounded in length, depth, terms and bits.
package answer
