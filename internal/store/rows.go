package store

import "encoding/json"

// DefaultTenant is the tenant of a server without API keys.
const DefaultTenant = "default"

// All times are Unix milliseconds; 0 means not yet.

// Session is one conversation.
type Session struct {
	ID    string
	Title string
	// Leaf is the current entry; "" for an empty session.
	Leaf     string
	Metadata json.RawMessage
	// Ephemeral is for the conversation of a client that keeps its own history:
	// it is not listed among the others and may be dropped some time after its
	// last run.
	Ephemeral bool
	Created   int64
	Updated   int64

	// IdempotencyKey is unique per tenant where it is not empty. RequestHash
	// tells an honest repetition from a different request under the same key.
	IdempotencyKey string
	RequestHash    string
}

// SessionRef names a session of a tenant.
type SessionRef struct{ Tenant, ID string }

// Entry is one node of a session's tree. The parent may be written later than
// the entry itself (tool results that end out of order); a leaf never points
// past a gap.
type Entry struct {
	SessionID string
	// ID is unique in the session; ids sort in the order of the conversation.
	ID     string
	Parent string
	// Kind is message, compaction, branch_summary, label or custom.
	Kind    string
	RunID   string
	Created int64
	Body    json.RawMessage
}

// Run is one execution inside a session.
type Run struct {
	ID         string
	SessionID  string
	RootID     string // "" if the run is a root itself
	ParentID   string
	ParentCall string // the parent's tool call that waits for this run
	Profile    string
	Version    string // of the profile
	Mode       string // interactive, autonomous
	User       string // who it is for; "" is somebody without a name

	// IdempotencyKey is unique per tenant where it is not empty. RequestHash
	// tells an honest repetition from a different request under the same key.
	IdempotencyKey string
	RequestHash    string
	// Spec is what the run was started with; fixed.
	Spec     json.RawMessage
	Metadata json.RawMessage
	Created  int64

	RunUpdate
}

// RunUpdate is the part of a run that changes.
type RunUpdate struct {
	Status     string
	StopReason string
	// Epoch counts drivers; see Fence.
	Epoch int64
	// Seq is a number that no published event exceeds.
	Seq int64
	// State is the machine's whole control state.
	State []byte
	// OutputEntry is the entry that holds the final answer.
	OutputEntry string
	Error       json.RawMessage
	Usage       json.RawMessage
	Steps       int
	Started     int64
	Ended       int64
}

// RunChange updates a run.
type RunChange struct {
	ID string
	RunUpdate
}

// RunRef names a run of a tenant.
type RunRef struct {
	Tenant, ID, SessionID, Status string
	// Parent is whether other runs name it as their parent.
	Parent bool
}

// RunFilter selects runs; zero fields select all.
type RunFilter struct {
	SessionID string
	Status    string
	RootID    string
	ParentID  string
	// IdempotencyKey selects the one run that was started under it.
	IdempotencyKey string
	Limit          int // 0: 50
	Cursor         string
}

// SessionFilter selects sessions: the ephemeral ones, or those that are not.
type SessionFilter struct {
	Ephemeral bool
	Limit     int // 0: 50
	Cursor    string
}

// Input is a message that a run has accepted and not yet taken into its session.
type Input struct {
	RunID   string
	ID      string // becomes the id of the entry
	Kind    string // prompt, steer, follow_up
	Body    json.RawMessage
	Created int64
}

// InputRef names an input.
type InputRef struct{ RunID, ID string }

// Event is one event of a run as it is stored; see package event.
type Event struct {
	RunID string
	Seq   int64
	Time  int64
	Type  string
	Step  int
	Data  json.RawMessage
}

// Trace is one input or effect of a run, in order, for replay and audit.
// Recovery never reads it.
type Trace struct {
	RunID string
	Time  int64
	Kind  string
	Body  json.RawMessage
}

// Interrupt is a durable wait for a person.
type Interrupt struct {
	ID        string
	RunID     string
	RootID    string
	SessionID string
	CallID    string
	// Kind is approval, question, plan or uncertain.
	Kind     string
	Prompt   string
	Schema   json.RawMessage
	ToolCall json.RawMessage
	Created  int64
	Expires  int64

	InterruptAnswer
}

// InterruptAnswer is how an interrupt ended. Status is open, answered, expired
// or cancelled.
type InterruptAnswer struct {
	Status     string
	Decision   string
	Answer     json.RawMessage
	Reason     string
	AnsweredBy string
	Answered   int64
}

// InterruptChange answers an open interrupt. If it is not open any more the
// whole Tx is refused with ErrConflict.
type InterruptChange struct {
	ID string
	InterruptAnswer
}

// InterruptRef names an interrupt of a tenant, and when it ends.
type InterruptRef struct {
	Tenant, RunID, ID string
	Expires           int64
}

// InterruptFilter selects interrupts. RunID also selects those of descendants
// of that run when it is their root. Within selects of all those the ones of one
// run and of runs whose ids begin with its id and a dot: the runs below it.
type InterruptFilter struct {
	Status string
	RunID  string
	Within string
	Limit  int // 0: 50
	Cursor string
}

// Usage is what one model call used and cost. Amounts are in billionths of a
// dollar.
type Usage struct {
	RunID, SessionID, Provider, Model    string
	User                                 string // of the run
	Time                                 int64
	Input, Output, CacheRead, CacheWrite int64
	Cost                                 int64
}

// UsageFilter selects usage. From and To are Unix milliseconds, To exclusive;
// 0 means open. Usage is kept by the minute: one that is partly between From and To
// counts as a whole.
type UsageFilter struct {
	SessionID, RunID, User string
	From, To               int64
}

// RecentFilter selects what was used lately: since a time in Unix milliseconds, of
// all, or of One user (User "": the one without a name).
type RecentFilter struct {
	Since int64
	One   bool
	User  string
}

// UsageTotal is a sum over one model's calls.
type UsageTotal struct {
	Provider, Model                      string
	Calls                                int64
	Input, Output, CacheRead, CacheWrite int64
	Cost                                 int64
}

// Blob is a large payload, stored once per tenant and content. ID is the hex
// SHA-256 of Data.
type Blob struct {
	ID       string
	MimeType string
	Name     string
	Created  int64
	Data     []byte
}

// BlobUse says that a session needs a blob of its tenant. A blob that was used
// goes with the last session that used it; one that never was stays.
// The other fields are for its [Artifact]: which call made it, what it is called
// there (the blob's own name if empty) and when (the blob's time if 0).
type BlobUse struct {
	SessionID, BlobID string

	RunID, CallID, Name string
	Created             int64
}

// Fence makes a Tx conditional on the epoch of a run.
type Fence struct {
	RunID string
	Epoch int64
}

// Leaf moves a session to an entry.
type Leaf struct {
	SessionID string
	EntryID   string
	Updated   int64
}

// Tx is one atomic change. Its parts are applied in the order of the fields.
type Tx struct {
	// Attempt is set by a Commit that returned ErrUnknown: it is what the store knows
	// the attempt by when the same Tx is committed again. Others leave it alone.
	Attempt []byte

	Tenant string
	Fences []Fence

	NewSessions []*Session
	NewRuns     []*Run
	Entries     []*Entry
	Leaves      []Leaf
	Runs        []RunChange

	Inputs     []*Input
	DropInputs []InputRef

	NewInterrupts []*Interrupt
	Answers       []InterruptChange
	NewRules      []*Rule
	DropRules     []RuleRef
	NewProposals  []*Proposal
	Proposals     []ProposalChange

	Settles  []Settlement
	Counts   []PotCount
	Raises   []PotRaise
	Reserves []Reservation

	Events []*Event
	Trace  []*Trace
	Usage  []*Usage
	Blobs  []*Blob

	BlobUses []BlobUse

	ExpireArtifacts []ArtifactExpiry
	Quarantine      []*Quarantine

	// DropSessions deletes sessions with everything that belongs to them:
	// entries, rules, runs with their inputs, events, trace and interrupts, and blobs
	// that no other session uses. Their usage stays: it is the bill. A session
	// with a run that has not ended is refused (ErrSessionBusy).
	DropSessions []string

	NewKeys []*APIKey
	Keys    []KeyChange

	NewSchedules  []*Schedule
	Schedules     []ScheduleChange
	DropSchedules []string // ids

	// Memories writes documents. One whose revision is not one above that in the
	// store (1: there is none yet) refuses the whole Tx with ErrConflict.
	Memories []*Memory

	// What follows is for stores that are a Cluster.
	Nodes    []NodeChange
	Claims   []Claim
	Holds    []Hold
	Mail     []*Mail
	MailDone []MailOutcome
	DropMail []MailRef
	// Effects are applied in their order. What a run has of them goes when it ends.
	Effects []EffectChange
}

// Empty reports whether the Tx changes nothing.
func (t *Tx) Empty() bool {
	return len(t.NewSessions)+len(t.NewRuns)+len(t.Entries)+len(t.Leaves)+len(t.Runs)+len(t.Inputs)+
		len(t.DropInputs)+len(t.NewInterrupts)+len(t.Answers)+len(t.Events)+len(t.Trace)+
		len(t.Usage)+len(t.Blobs)+len(t.BlobUses)+len(t.DropSessions)+len(t.NewRules)+len(t.DropRules)+
		len(t.ExpireArtifacts)+len(t.Quarantine)+len(t.NewProposals)+len(t.Proposals)+len(t.NewKeys)+len(t.Keys)+
		len(t.Settles)+len(t.Counts)+len(t.Raises)+len(t.Reserves)+
		len(t.NewSchedules)+len(t.Schedules)+len(t.DropSchedules)+len(t.Memories)+
		len(t.Nodes)+len(t.Claims)+len(t.Holds)+len(t.Mail)+len(t.MailDone)+len(t.DropMail)+len(t.Effects) == 0
}
