package memory

import (
	"context"
	"errors"

	"agentd/fault"
)

// Scope is which of the two documents is meant.
type Scope string

// The scopes.
const (
	// Global is what is remembered of the user, or of the tenant where nobody says
	// who the user is.
	Global Scope = "global"
	// Project is what is remembered of the folder that agents work in.
	Project Scope = "project"
)

// Scopes are both scopes, in the order in which they are read.
func Scopes() []Scope { return []Scope{Global, Project} }

// Place says whose document is meant. Documents of different places have nothing
// in common.
type Place struct {
	Tenant string
	// User is the tenant's user; "" for what all of them share. Of a project the
	// user does not matter.
	User  string
	Scope Scope
}

// Keeper keeps documents. It is safe for concurrent use; errors are *fault.Error.
type Keeper interface {
	// Load reads a document; one that is not there is empty.
	Load(ctx context.Context, p Place) (*Document, error)
	// Change reads a document, has it changed, and keeps what came of it, whole and
	// durably. If change gives an error nothing is kept. change may be called
	// again, on a newer document.
	Change(ctx context.Context, p Place, change func(*Document) error) error
}

func missing(id string) error {
	return &fault.Error{Kind: fault.NotFound, Err: errors.New("nothing that is remembered has the id " + id),
		Hint: "Ids change with the words; list them again (agentd memory list)."}
}
