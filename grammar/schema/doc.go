// Package schema turns JSON Schemas (draft 2020-12, and 4 to 7 where they differ) into grammars of the JSON texts that
// they describe. A schema that a grammar cannot enforce is refused with the name of the keyword; only annotations are
// ignored.
//
// Of the texts of an instance the grammar accepts some. Properties stand in the order of the schema, others after them.
// Characters of names, and of texts that an enumeration, a pattern or a format bounds, are escaped only where they must
// be. White space has bounds.
package schema
