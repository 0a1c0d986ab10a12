// Package mutate makes hostile files of good ones, for tests of readers. A file of random bytes is
// refused at its first field. These files stay well formed where nothing was changed, and mostly where
// something was, so they reach the code after the parser.
//
//	a good file + Choices ──▶ one to four changes ──▶ a file
//
// The same choices make the same changes, whether a fuzzer or a seed has made them.
package mutate
