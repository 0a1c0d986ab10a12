// Package registry finds models by the names that requests use for them, and says
// what each offers.
package registry
