package form

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentd/fault"
	"agentd/internal/store"
)

// Refuse is an error that a caller is meant to handle; cause is one of the
// errors of package store.
func Refuse(cause error, format string, args ...any) error {
	kind := fault.Conflict
	if errors.Is(cause, store.ErrNotFound) {
		kind = fault.NotFound
	}
	return &fault.Error{Kind: kind, Err: fmt.Errorf(format+": %w", append(args, cause)...)}
}

// Invalid is the error of a Tx that no store can take.
func Invalid(format string, args ...any) error {
	return &fault.Error{Op: "store.Commit", Kind: fault.Invalid, Err: fmt.Errorf(format, args...)}
}

// Ended is whether nothing follows a run's status. Stores know them from their schemas,
// which have them in their indexes.
func Ended(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

// Check says what is wrong with a Tx as far as that is to be seen without a store.
// The error is of kind Invalid.
func Check(tx *store.Tx) error {
	if tx.Tenant == "" {
		return Invalid("a Tx without a tenant")
	}
	for _, x := range tx.NewSessions {
		if x.ID == "" {
			return Invalid("a session without an id")
		}
	}
	for _, x := range tx.NewRuns {
		if x.ID == "" || x.SessionID == "" || x.Status == "" {
			return Invalid("run %q lacks an id, a session or a status", x.ID)
		}
	}
	for _, x := range tx.Entries {
		if x.ID == "" || x.Kind == "" {
			return Invalid("entry %q of session %q lacks an id or a kind", x.ID, x.SessionID)
		}
	}
	for _, x := range tx.Runs {
		if x.Status == "" {
			return Invalid("a change of run %q without a status", x.ID)
		}
	}
	for _, x := range tx.Inputs {
		if x.ID == "" {
			return Invalid("an input of run %q without an id", x.RunID)
		}
	}
	for _, x := range tx.NewInterrupts {
		if x.ID == "" || x.Status == "" {
			return Invalid("interrupt %q lacks an id or a status", x.ID)
		}
	}
	for _, x := range tx.Answers {
		if x.Status == "" {
			return Invalid("an answer to interrupt %q without a status", x.ID)
		}
	}
	for _, x := range tx.NewRules {
		if x.ID == "" || x.Tool == "" || len(x.Pattern) == 0 {
			return Invalid("a rule needs an id, a tool and a pattern")
		}
	}
	for i := range tx.Reserves {
		r := &tx.Reserves[i]
		if r.Key == "" || r.Call.Money < 0 || r.Call.Tokens < 0 || r.Keep.Money < 0 || r.Keep.Tokens < 0 {
			return Invalid("a reservation of run %s without a key, or of less than nothing", r.RunID)
		}
	}
	for _, x := range tx.ExpireArtifacts {
		if _, err := hex.DecodeString(x.ID); err != nil {
			return Invalid("artifact id %q: %w", x.ID, err)
		}
	}
	for _, x := range tx.Quarantine {
		if x.EntryID == "" || x.What == "" {
			return Invalid("a quarantine needs an entry and what is left out of it")
		}
	}
	for _, x := range tx.Blobs {
		if sum := sha256.Sum256(x.Data); hex.EncodeToString(sum[:]) != x.ID {
			return Invalid("the id of blob %q is not the SHA-256 of its data", x.ID)
		}
	}
	for i := range tx.Effects {
		switch x := &tx.Effects[i]; {
		case x.Op < store.AskEffect || x.Op > store.FreeEffect:
			return Invalid("there is no operation %d on calls", x.Op)
		case x.Op == store.AskEffect && (x.ID == "" || x.Kind == "" || x.Pool == "" || x.Class == ""):
			return Invalid("call %q of run %q lacks an id, a kind, a pool or a class", x.ID, x.RunID)
		}
	}
	if err := checkSchedules(tx); err != nil {
		return err
	}
	for _, m := range tx.Memories {
		if m.Name == "" || m.Revision < 1 {
			return Invalid("memory %q lacks a name or a revision", m.Name)
		}
	}
	return checkKeys(tx)
}

// Words is a list as it is stored between spaces; nil if it is empty.
func Words(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Fields(s)
}

func checkKeys(tx *store.Tx) error {
	for _, k := range tx.NewKeys {
		switch {
		case k.ID == "" || len(k.Hash) != sha256.Size || len(k.Scopes) == 0:
			return Invalid("API key %q lacks an id, a hash or scopes", k.ID)
		case k.Tenant != tx.Tenant:
			return Invalid("API key %q is of tenant %q and its Tx of %q", k.ID, k.Tenant, tx.Tenant)
		case slices.ContainsFunc(k.Scopes, func(s string) bool { return s == "" || strings.Contains(s, " ") }):
			return Invalid("API key %q has a scope that is no word", k.ID)
		}
	}
	return nil
}
