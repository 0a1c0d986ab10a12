// Package schema turns JSON Schemas (draft 2020-12, and 4 to 7 where they differ)
// into grammars of the JSON texts that they describe. What a grammar cannot hold a
// text to is refused with the name of the keyword; nothing is ignored but
// annotations.
//
// Of the texts of an instance the grammar accepts some: properties stand in the
// order of the schema, those that it does not name after the others; characters of
// names, and of texts that an enumeration, a pattern or a format bounds, are escaped only where they
// must be; white space has bounds.
package schema
