package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"agentd/internal/store"
)

// Run tests the stores that open returns. open gives a new empty store each
// time and has it closed at the end of the test. reopen closes s and opens
// what it wrote again; a store that keeps nothing returns s itself.
func Run(t *testing.T, open func(t *testing.T) store.Store, reopen func(t *testing.T, s store.Store) store.Store) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*fixture)
	}{
		{"RoundTrip", testRoundTrip},
		{"ChangesReplace", testChangesReplace},
		{"EmptyTx", testEmptyTx},
		{"InvalidTx", testInvalidTx},
		{"AtomicUnlessRefused", testAtomic},
		{"RefusedTxLeavesNeighboursAlone", testNeighbours},
		{"UnknownIsNotFound", testUnknown},
		{"TenantsAreSeparate", testTenants},
		{"WriteOnce", testWriteOnce},
		{"FenceRefusesStaleDriver", testFence},
		{"FenceRaceHasOneWinner", testFenceRace},
		{"SessionBusy", testSessionBusy},
		{"SessionBusyRaceHasOneWinner", testSessionBusyRace},
		{"Idempotency", testIdempotency},
		{"IdempotencyRaceHasOneWinner", testIdempotencyRace},
		{"SessionIdempotency", testSessionIdempotency},
		{"SessionIdempotencyRaceHasOneWinner", testSessionIdempotencyRace},
		{"Unfinished", testUnfinished},
		{"RunsFilterAndPages", testRunPages},
		{"SessionsByUpdateAndPages", testSessionPages},
		{"BadCursor", testBadCursor},
		{"EntriesByID", testEntries},
		{"PathFollowsParents", testPath},
		{"PathRefusesGap", testPathGap},
		{"LeafMustExist", testLeaf},
		{"SessionsAreTrees", testTrees},
		{"EventsAfterAndLimit", testEvents},
		{"EventsPageByPage", testEventPages},
		{"EventsOfSeveralRunsInOneTx", testEventsOfSeveralRuns},
		{"TraceKeepsOrder", testTrace},
		{"TracePageByPage", testTracePages},
		{"InputsQueue", testInputs},
		{"InterruptAnsweredOnce", testInterrupts},
		{"InterruptFilter", testInterruptFilter},
		{"InterruptPages", testInterruptPages},
		{"ExpiringInterrupts", testExpiring},
		{"SessionRules", testSessionRules},
		{"Proposals", testProposals},
		{"BudgetsHoldAndSettle", testBudgets},
		{"BudgetRefused", testBudgetRefused},
		{"BudgetReplaced", testBudgetReplaced},
		{"BudgetsApart", testBudgetsApart},
		{"BudgetFenced", testBudgetFenced},
		{"BudgetRaceNeverPassesTheCap", testBudgetRace},
		{"InterruptAnswerRaceHasOneWinner", testAnswerRace},
		{"UsageSums", testUsage},
		{"Recent", testRecent},
		{"BlobsByContent", testBlobs},
		{"DropSessionRemovesEverything", testDrop},
		{"BlobsGoWithTheirLastSession", testBlobUses},
		{"ArtifactsOutliveTheirContent", testArtifacts},
		{"OverdueArtifacts", testOverdue},
		{"Quarantine", testQuarantine},
		{"EphemeralSessionsAreListedApart", testEphemeral},
		{"ExpiredSessions", testExpired},
		{"FamilyOfASession", testFamily},
		{"APIKeys", testAPIKeys},
		{"Schedules", testSchedules},
		{"LastOfKeys", testLastKeyed},
		{"Memories", testMemories},
		{"NodesAndLeases", clustered(testNodes)},
		{"ClaimsAreOneNodesAlone", clustered(testClaims)},
		{"ClaimsTakeWhatThereIsToDo", clustered(testClaimOrder)},
		{"ClaimRaceHasOneWinner", clustered(testClaimRace)},
		{"ClaimsOfFullNodes", clustered(testClaimChildren)},
		{"OrphansAreToldOnce", clustered(testOrphans)},
		{"RunsThatAreTooNew", clustered(testClaimNeeds)},
		{"MailIsAppliedOnce", clustered(testMail)},
		{"HoldsKeepSessions", clustered(testHolds)},
		{"HoldRaceHasOneWinner", clustered(testHoldRace)},
		{"CallsForPools", clustered(testEffects)},
		{"CallsForPoolsOfDeadNodes", clustered(testEffectOwners)},
		{"CallsForPoolsInTurn", clustered(testEffectOrder)},
		{"CallsForPoolsAreTakenOnce", clustered(testEffectRace)},
		{"ConcurrentCommitsAndReads", testConcurrent},
		{"ReadsSeeOwnWrites", testReadYourWrites},
		{"ContextCancelled", testCancelled},
		{"ClosedStore", testClosed},
		{"PayloadsAreOpaque", testPayloads},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.test(&fixture{T: t, store: open(t), reopen: reopen})
		})
	}
}

// tenant is the tenant of tests that need one alone.
const tenant = "tenant-a"

type fixture struct {
	*testing.T
	store  store.Store
	reopen func(t *testing.T, s store.Store) store.Store
}

func (f *fixture) commit(tx *store.Tx) {
	f.Helper()
	if tx.Tenant == "" {
		tx.Tenant = tenant
	}
	if err := f.store.Commit(f.Context(), tx); err != nil {
		f.Fatalf("Commit: %v", err)
	}
}

// refused commits tx and wants it refused with an error that is cause.
func (f *fixture) refused(tx *store.Tx, cause error) {
	f.Helper()
	if tx.Tenant == "" {
		tx.Tenant = tenant
	}
	if err := f.store.Commit(f.Context(), tx); !errors.Is(err, cause) {
		f.Fatalf("Commit: got error %v, want %v", err, cause)
	}
}

func (f *fixture) again() {
	f.Helper()
	f.store = f.reopen(f.T, f.store)
}

// equal compares what was read with what is wanted, pointers followed.
func equal[V any](f *fixture, what string, got, want V) {
	f.Helper()
	if !reflect.DeepEqual(got, want) {
		f.Fatalf("%s:\n got %s\nwant %s", what, show(got), show(want))
	}
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return string(b)
}

func ok[V any](f *fixture) func(V, error) V {
	return func(v V, err error) V {
		f.Helper()
		if err != nil {
			f.Fatalf("%T: %v", v, err)
		}
		return v
	}
}

// filled fails if a field of *v is zero, so that a field that is added to a row
// cannot be forgotten in the test that compares rows.
func filled(f *fixture, v any) {
	f.Helper()
	var walk func(path string, x reflect.Value)
	walk = func(path string, x reflect.Value) {
		for i := range x.NumField() {
			field := x.Field(i)
			name := path + "." + x.Type().Field(i).Name
			if field.Kind() == reflect.Struct {
				walk(name, field)
			} else if field.IsZero() {
				f.Fatalf("the test leaves %s empty", name)
			}
		}
	}
	e := reflect.ValueOf(v).Elem()
	walk(e.Type().Name(), e)
}

// Makers of rows. n makes them differ.

func session(id string) *store.Session {
	return &store.Session{ID: id, Created: 1000, Updated: 1000}
}

func run(id, sessionID, status string) *store.Run {
	return &store.Run{ID: id, SessionID: sessionID, Created: 1000, RunUpdate: store.RunUpdate{Status: status, Epoch: 1}}
}

func entry(sessionID, id, parent string) *store.Entry {
	return &store.Entry{SessionID: sessionID, ID: id, Parent: parent, Kind: "message", Created: 1000,
		Body: json.RawMessage(`{"role":"user","content":"` + id + `"}`)}
}

func event(runID string, seq int64) *store.Event {
	return &store.Event{RunID: runID, Seq: seq, Time: 1000 + seq, Type: "text_delta", Step: 1,
		Data: json.RawMessage(fmt.Sprintf(`{"text":"event %d"}`, seq))}
}

func change(id, status string, epoch int64) store.RunChange {
	return store.RunChange{ID: id, RunUpdate: store.RunUpdate{Status: status, Epoch: epoch}}
}

func interrupt(id, runID string) *store.Interrupt {
	return &store.Interrupt{ID: id, RunID: runID, Kind: "question", InterruptAnswer: store.InterruptAnswer{Status: "open"}}
}

// begin creates a session with a running run.
func (f *fixture) begin(sessionID, runID string) {
	f.Helper()
	f.commit(&store.Tx{NewSessions: []*store.Session{session(sessionID)}, NewRuns: []*store.Run{run(runID, sessionID, "running")}})
}

// end ends runs, without which their sessions can not be dropped.
func (f *fixture) end(runIDs ...string) {
	f.Helper()
	for _, id := range runIDs {
		r, err := f.store.Run(f.Context(), tenant, id)
		if err != nil {
			f.Fatal(err)
		}
		r.RunUpdate.Status = "completed"
		f.commit(&store.Tx{Runs: []store.RunChange{{ID: id, RunUpdate: r.RunUpdate}}})
	}
}

func ids[V any](vs []V, id func(V) string) []string {
	out := make([]string, 0, len(vs))
	for _, v := range vs {
		out = append(out, id(v))
	}
	return out
}

func entryIDs(es []*store.Entry) []string {
	return ids(es, func(e *store.Entry) string { return e.ID })
}

func runIDs(rs []*store.Run) []string { return ids(rs, func(r *store.Run) string { return r.ID }) }

func seqs(es []*store.Event) []int64 {
	var out []int64
	for _, e := range es {
		out = append(out, e.Seq)
	}
	return out
}

// race runs f n times at once and gives the errors.
func race(n int, f func(i int) error) []error {
	start := make(chan struct{})
	errs := make([]error, n)
	done := make(chan struct{})
	for i := range n {
		go func() {
			<-start
			errs[i] = f(i)
			done <- struct{}{}
		}()
	}
	close(start)
	for range n {
		<-done
	}
	return errs
}

// oneWinner wants one nil in errs and cause in the others.
func (f *fixture) oneWinner(errs []error, cause func(error) bool) {
	f.Helper()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !cause(err):
			f.Fatalf("a loser got %v", err)
		}
	}
	if won != 1 {
		f.Fatalf("%d of %d won", won, len(errs))
	}
}

func is(cause error) func(error) bool {
	return func(err error) bool { return errors.Is(err, cause) }
}

func (f *fixture) commitIn(ctx context.Context, tx *store.Tx) error {
	if tx.Tenant == "" {
		tx.Tenant = tenant
	}
	return f.store.Commit(ctx, tx)
}
