// Package load reads what a model's graph is built of from a file: the hyper-parameters of its
// architecture, and its tensors as products that compute.
//
//	metadata ──Header──▶ hyper-parameters, each within bounds
//	tensors  ──Tensors──▶ vectors and, by way of package weights, Stacked products
//
// A Report collects what is wrong on the way. The first failure sticks and later calls return
// zero values, so that what builds a graph reads as a list. The package knows keys and tensors by
// the names it is given, and no architecture.
package load
