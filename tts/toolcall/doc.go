// Package toolcall reads calls of tools out of the text that a model writes, as it
// comes. Each family of models writes them its own way, a Format; which one a model
// has is seen from its chat template.
package toolcall
