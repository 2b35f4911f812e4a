// Package memory keeps what agents remember beyond a session: sentences in
// documents called MEMORY.md, one for the user or tenant (global) and one for the
// project, and what may be written into them and is read of them.
//
// It promises: a document that a person wrote keeps every byte that a change does
// not concern; a sentence is there once; a change is made whole or not at all; of
// every sentence that was not written by hand it is known when it was remembered
// and whether outputs of tools could have put it there ([Tool]). Such sentences are
// shown to models as quotations, apart from the others, and so is what others wrote
// into the file of a workspace ([Workspace]). Secrets are never kept.
//
// Where documents are is a [Keeper]'s business: files ([NewFiles]), rows of the
// store ([NewRows]) or a memory server ([NewGraph]).
package memory
