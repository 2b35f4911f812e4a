package store

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrLapsed is the error of a node whose lease is over. It can not be renewed: the
// node stops what it drives and comes back under another id.
var ErrLapsed = errors.New("the lease of this node is over")

// Node is a process that shares a store with others. Its row is its lease: what is
// claimed or held in its name counts until the lease is over.
type Node struct {
	// ID is used once: a node that lost its lease takes another.
	ID string
	// Name is for people: which machine and process it is.
	Name string
	// Version is the newest form of stored state that it understands.
	Version int
	// Worker is whether it drives runs.
	Worker bool
	// Pools are those that it makes calls of for others; "*" is all of them.
	Pools   []string
	Started int64
	// Until is when its lease is over.
	Until int64
}

// NodeChange joins, renews or leaves. A renewal of a lease that is over, or of one
// that there is not, is refused with ErrLapsed.
type NodeChange struct {
	Node
	Join, Leave bool
	// Now is the caller's clock and For how long the lease lasts from then, both in
	// milliseconds. A store that several machines share goes by its own clock.
	Now, For int64
	// Sweep, if not 0, also deletes mail that was applied before then, mail of runs
	// that have ended, and nodes whose lease was over before then.
	Sweep int64
}

// Claim says which node drives a run. One with a Node takes the run: it is refused
// with ErrFenced while another node with a lease has it or if its epoch is not Epoch,
// and with ErrLapsed if Node has no lease; it raises the epoch by one, but for a run
// that the same Tx makes. One without a Node gives the run back if its epoch is Epoch,
// and changes nothing otherwise. A run that ends is given back by itself.
type Claim struct {
	RunID, Node string
	Epoch, Now  int64
	// Needs, given back: only nodes of that Version may take it from then on.
	Needs int
}

// ClaimRequest selects what a node claims.
type ClaimRequest struct {
	// Look claims nothing, and gives what would be claimed; Node does not count then.
	Look    bool
	Node    string
	Version int
	Now     int64
	// Roots is how many runs may be claimed that start or go on and are no children
	// of other runs; Limit how many in all. 0 means none.
	Roots, Limit int
	// Only claims this run alone, if there is something to do about it, or nil.
	Only *RunRef
	// Below is that run, which is a root, and all below it.
	Below bool
}

// Claimed is a run that a node has.
type Claimed struct {
	RunRef
	// Epoch is that of the claim: who finds another one has lost it.
	Epoch int64
	// Root is whether it is no child of another run.
	Root bool
	// Turn is whether no other run of its session is ahead.
	Turn bool
	// Mail is whether there is some that nobody has applied.
	Mail bool
	// Now is what the clock showed that the store goes by, in Unix milliseconds; 0 if it
	// has none of its own.
	Now int64
	// Taken is whether a node had it that did not give it back: it died, or lost its
	// lease, in the middle of whatever it did.
	Taken bool
}

// Mail is something that somebody wants of a run, on its way to the node that drives
// it. It is applied in the order in which it was written, once: Outcome is committed
// together with what it changed.
type Mail struct {
	RunID string
	// ID is unique in the run.
	ID string
	// Kind and Body are the engine's.
	Kind    string
	Body    json.RawMessage
	Created int64
	// Applied is when it was, or 0; Outcome is what came of it.
	Applied int64
	Outcome json.RawMessage
}

// MailOutcome ends mail that waits. If it does not wait any more the whole Tx is
// refused with ErrConflict.
type MailOutcome struct {
	RunID, ID string
	Applied   int64
	Outcome   json.RawMessage
}

// MailRef names mail. To drop what there is not changes nothing.
type MailRef struct{ RunID, ID string }

// Hold keeps others off something while a node works on it, as long as that node has
// its lease. A name is held once: a second holder is refused with ErrConflict.
type Hold struct {
	// Name is what is held, ID by whom. A name of "session/" and a session's id keeps
	// runs of that session from being claimed, and is refused with ErrSessionBusy while
	// the session has a run that has not ended.
	Name, ID string
	// Node is the holder's; "" lets go. To let go of what is not held (any more) is
	// refused with ErrConflict.
	Node string
	Now  int64
}

// HoldSession begins the name of a hold on a session.
const HoldSession = "session/"

// Cluster is a store that several nodes may drive runs from. Its changes are parts of
// [Tx].
type Cluster interface {
	// Claim takes runs that have something to do and that no node with a lease has:
	// those with mail or with an interrupt whose time is over first, then those that
	// were under way, then those whose turn it is, oldest first. Two nodes never claim
	// the same.
	Claim(ctx context.Context, q ClaimRequest) ([]Claimed, error)
	// Claimed lists what a node has, oldest first.
	Claimed(ctx context.Context, node string) ([]Claimed, error)
	// Mail gives what waits for a run, in order.
	Mail(ctx context.Context, tenant, runID string) ([]*Mail, error)
	// Outcome gives one piece of mail, applied or not.
	Outcome(ctx context.Context, tenant, runID, id string) (*Mail, error)
	// Ahead gives the oldest run of a session that has not ended, else who holds the
	// session, else "".
	Ahead(ctx context.Context, tenant, sessionID string, now int64) (string, error)
	// Orphans lists runs that wait for people below a run that has ended or is gone, and
	// that have no mail: nobody has told them. At most limit, oldest first.
	Orphans(ctx context.Context, limit int) ([]RunRef, error)
	// Nodes lists the nodes that have a lease, oldest first.
	Nodes(ctx context.Context, now int64) ([]*Node, error)
	Effects
}
