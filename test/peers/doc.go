// Package peers shows that what users of other agent runtimes suffer from can not
// happen here: a test for each, named after its number in the list of what none of
// them has. Each is a small scenario of its own through the binary, the HTTP API or
// the library; the same promises are tested in depth elsewhere.
package peers
