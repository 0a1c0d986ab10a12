// Package jinja renders chat templates: the part of the Jinja2 language that
// templates of language models use, with Jinja2's behaviour under
// trim_blocks, lstrip_blocks and the loop controls.
//
//	source ─lexer─▶ tokens ─parser─▶ nodes ─┐
//	variables ──────────────────────────────┴─renderer (steps, bytes, depth bounded)─▶ text
//
// Its statements are if, for (else, filters, break, continue), set (also of
// blocks and of namespace attributes), macro, call, filter, with, raw and
// generation. It has Jinja2's expressions, and the filters, tests and methods
// of strings, lists and mappings that make sense for text. Recursive loops and
// the filters batch, groupby, truncate and wordcount are left out: no published
// chat template uses them.
//
// Invariants: a template reads nothing but its variables (include, import and
// extends are refused). Rendering ends within its Limits, whatever the
// template. Neither parsing nor rendering panics, and a Template may be rendered
// by many goroutines at once.
//
// It differs from Jinja2 where a model's file should work rather than fail.
// A loop over none is a loop over nothing, and lists and mappings that a
// render holds may be changed by their methods.
//
// Source: the Jinja2 documentation, "Template Designer Documentation".
package jinja
