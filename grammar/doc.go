// Package grammar says which tokens may follow a text so that it can still become one that a grammar describes.
//
// A grammar is rules over terminals, which are regular expressions. A State is a set of pairs: a terminal as far as it has
// been read, and the stacks of symbols that may follow it. States are interned and their transitions by byte kept, so that
// a grammar turns into an automaton as far as texts lead into it. There is no lexer, and exactly the texts of the rules are
// accepted. Stacks of equal tops are joined (a graph-structured stack), so that ambiguity costs no more than there are
// symbols.
package grammar
