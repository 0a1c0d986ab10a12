// Package answer finds the final answer in a solution's text and reports which
// answers are the same.
//
//	text ──Extract──▶ "\frac{1}{2}" ──Normalize──▶ key "#1/2" ◀── "0.5", "50%", "2/4"
//
// Answers with one key are equal, so grouping is transitive and votes can be
// counted with a map. Numbers are exact rationals, never floats. Both parts
// are linear or nearly so in the text's length, whatever a model wrote.
package answer
