// Package regex holds regular expressions as a hash-consed set of terms whose
// derivatives are taken byte by byte (Brzozowski 1964; Owens, Reppy and Turon,
// "Regular-expression derivatives re-examined"). Beside the usual operators there
// are intersection, complement and decimal numbers within bounds, which the
// constraints of schemas are made of. An expression is a state of its automaton:
// nothing is built before it is looked at.
package regex
