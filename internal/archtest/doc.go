// Package archtest holds the rules that keep the code in layers and free of
// hidden state, as tests over the source of the whole module. It has no code of
// its own to use.
//
// It promises that each rule stands here with its reason, applies to packages
// that are added later, and names file and line where it is broken. The rules
// read the source with go/parser: no build, every platform's files at once.
// Exceptions are tables in these tests; each has its reason too.
package archtest
