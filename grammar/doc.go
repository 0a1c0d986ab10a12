// Package grammar says which tokens may follow a text so that it can still become
// one that a grammar describes.
//
// A grammar is rules over terminals, which are regular expressions. What has been
// read is a set of pairs: a terminal as far as it has been read, and the stacks of
// symbols that may follow it. Such a set is a State. States are interned and
// their transitions by byte kept, so that a grammar turns into an automaton as far
// as texts lead into it; there is no lexer, and what is accepted is exactly what
// the rules describe. Stacks of equal tops are joined (a graph-structured stack), so
// that ambiguity costs no more than there are symbols.
package grammar
