package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"agentd/fault"
	"agentd/internal/store"
)

// everything is a Tx with a row of each kind and every field set.
func everything() *store.Tx {
	update := store.RunUpdate{Status: "failed", StopReason: "budget", Epoch: 3, Seq: 40, State: []byte{0, 1, 2, 0xff},
		OutputEntry: "e2", Error: json.RawMessage(`{"kind":"timeout"}`), Usage: json.RawMessage(`{"input":1}`), Steps: 7, Started: 1001, Ended: 1002}
	blob := newBlob("some data", "text/plain", "a.txt")
	return &store.Tx{Tenant: tenant,
		NewSessions: []*store.Session{{ID: "s1", Title: "title", Leaf: "e2", Metadata: json.RawMessage(`{"a":1}`), Ephemeral: true, Created: 1000, Updated: 2000,
			IdempotencyKey: "session key", RequestHash: "session hash"}},
		NewRuns: []*store.Run{{ID: "r1", SessionID: "s1", RootID: "r0", ParentID: "rp", ParentCall: "call", Profile: "demo", Version: "1.2.3",
			Mode: "autonomous", IdempotencyKey: "key", RequestHash: "hash", Spec: json.RawMessage(`{"model":"m"}`),
			Metadata: json.RawMessage(`{"b":2}`), Created: 1000, RunUpdate: update}},
		Entries: []*store.Entry{
			{SessionID: "s1", ID: "e1", Parent: "e0", Kind: "message", RunID: "r1", Created: 1003, Body: json.RawMessage(`{"role":"user"}`)},
			{SessionID: "s1", ID: "e2", Parent: "e1", Kind: "label", RunID: "r1", Created: 1004, Body: json.RawMessage(`{"label":"x"}`)}},
		Inputs: []*store.Input{{RunID: "r1", ID: "e3", Kind: "steer", Body: json.RawMessage(`{"role":"user"}`), Created: 1005}},
		NewInterrupts: []*store.Interrupt{{ID: "i1", RunID: "r1", RootID: "r0", SessionID: "s1", CallID: "call", Kind: "approval", Prompt: "May I?",
			Schema: json.RawMessage(`{"type":"object"}`), ToolCall: json.RawMessage(`{"name":"rm"}`), Created: 1006, Expires: 1007,
			InterruptAnswer: store.InterruptAnswer{Status: "answered", Decision: "approve", Answer: json.RawMessage(`{"yes":true}`),
				Reason: "fine", AnsweredBy: "someone", Answered: 1008}}},
		Events: []*store.Event{{RunID: "r1", Seq: 5, Time: 1009, Type: "text_delta", Step: 2, Data: json.RawMessage(`{"text":"hi"}`)}},
		Trace:  []*store.Trace{{RunID: "r1", Time: 1010, Kind: "model_done", Body: json.RawMessage(`{"step":2}`)}},
		Usage:  []*store.Usage{{RunID: "r1", SessionID: "s1", Provider: "p", Model: "m", Time: 1011, Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Cost: 5}},
		Blobs:  []*store.Blob{blob}, BlobUses: []store.BlobUse{{SessionID: "s1", BlobID: blob.ID}},
	}
}

func newBlob(data, mime, name string) *store.Blob {
	sum := sha256.Sum256([]byte(data))
	return &store.Blob{ID: hex.EncodeToString(sum[:]), MimeType: mime, Name: name, Created: 1012, Data: []byte(data)}
}

func testRoundTrip(f *fixture) {
	tx := everything()
	filled(f, tx.NewSessions[0])
	filled(f, tx.NewRuns[0])
	filled(f, tx.Entries[0])
	filled(f, tx.Inputs[0])
	filled(f, tx.NewInterrupts[0])
	filled(f, tx.Events[0])
	filled(f, tx.Trace[0])
	filled(f, tx.Usage[0])
	filled(f, tx.Blobs[0])
	f.commit(tx)
	for range 2 {
		ctx := f.Context()
		equal(f, "session", ok[*store.Session](f)(f.store.Session(ctx, tenant, "s1")), tx.NewSessions[0])
		equal(f, "run", ok[*store.Run](f)(f.store.Run(ctx, tenant, "r1")), tx.NewRuns[0])
		equal(f, "loaded run", ok[*store.Run](f)(f.store.Load(ctx, tenant, "r1")), tx.NewRuns[0])
		for _, e := range tx.Entries {
			equal(f, "entry", ok[*store.Entry](f)(f.store.Entry(ctx, tenant, "s1", e.ID)), e)
		}
		equal(f, "inputs", ok[[]*store.Input](f)(f.store.Inputs(ctx, tenant, "r1")), tx.Inputs)
		equal(f, "interrupt", ok[*store.Interrupt](f)(f.store.Interrupt(ctx, tenant, "i1")), tx.NewInterrupts[0])
		equal(f, "events", ok[[]*store.Event](f)(f.store.Events(ctx, tenant, "r1", 0, 0)), tx.Events)
		equal(f, "trace", ok[[]*store.Trace](f)(f.store.Trace(ctx, tenant, "r1", 0, 0)), tx.Trace)
		equal(f, "usage", ok[[]*store.UsageTotal](f)(f.store.Usage(ctx, tenant, store.UsageFilter{})),
			[]*store.UsageTotal{{Provider: "p", Model: "m", Calls: 1, Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Cost: 5}})
		equal(f, "blob", ok[*store.Blob](f)(f.store.Blob(ctx, tenant, tx.Blobs[0].ID)), tx.Blobs[0])

		// A list of runs leaves out State and Spec, and nothing else.
		want := *tx.NewRuns[0]
		want.State, want.Spec = nil, nil
		runs, cursor, err := f.store.Runs(ctx, tenant, store.RunFilter{})
		if err != nil || cursor != "" {
			f.Fatalf("Runs: cursor %q, error %v", cursor, err)
		}
		equal(f, "runs", runs, []*store.Run{&want})
		f.again()
	}
}

func testChangesReplace(f *fixture) {
	f.begin("s1", "r1")
	full := everything().NewRuns[0].RunUpdate
	f.commit(&store.Tx{Runs: []store.RunChange{{ID: "r1", RunUpdate: full}}})
	equal(f, "update", ok[*store.Run](f)(f.store.Run(f.Context(), tenant, "r1")).RunUpdate, full)

	// The next change replaces all of it, also with nothing.
	f.commit(&store.Tx{Runs: []store.RunChange{change("r1", "completed", 4)}})
	f.again()
	got := ok[*store.Run](f)(f.store.Run(f.Context(), tenant, "r1"))
	equal(f, "update", got.RunUpdate, store.RunUpdate{Status: "completed", Epoch: 4})
	equal(f, "session", got.SessionID, "s1")
	// There and back, as often as the machine wants.
	for i, status := range []string{"running", "completed", "running", "paused_checkpoint", "paused_checkpoint", "running", "failed"} {
		c := change("r1", status, int64(i))
		c.Steps = i
		f.commit(&store.Tx{Runs: []store.RunChange{c}})
		equal(f, "update", ok[*store.Run](f)(f.store.Run(f.Context(), tenant, "r1")).RunUpdate, c.RunUpdate)
	}
}

func testEmptyTx(f *fixture) {
	f.commit(&store.Tx{})
	f.begin("s1", "r1")
	f.refused(&store.Tx{Fences: []store.Fence{{RunID: "r1", Epoch: 9}}}, store.ErrFenced)
	f.commit(&store.Tx{Fences: []store.Fence{{RunID: "r1", Epoch: 1}}})
}

func testInvalidTx(f *fixture) {
	f.begin("s1", "r1")
	bad := newBlob("data", "", "")
	bad.Data = []byte("other data")
	if err := f.store.Commit(f.Context(), &store.Tx{NewSessions: []*store.Session{session("s2")}}); fault.KindOf(err) != fault.Invalid {
		f.Fatalf("a Tx without a tenant: %v", err)
	}
	for name, tx := range map[string]*store.Tx{
		"session without id":       {NewSessions: []*store.Session{{}}},
		"run without id":           {NewRuns: []*store.Run{run("", "s1", "queued")}},
		"run without status":       {NewRuns: []*store.Run{run("r2", "s1", "")}},
		"entry without id":         {Entries: []*store.Entry{entry("s1", "", "")}},
		"event without run":        {Events: []*store.Event{event("", 1)}},
		"events that do not rise":  {Events: []*store.Event{event("r1", 2), event("r1", 2)}},
		"event number zero":        {Events: []*store.Event{event("r1", 0)}},
		"blob that is not its id":  {Blobs: []*store.Blob{bad}},
		"blob whose id is no hash": {Blobs: []*store.Blob{{ID: "zz", Data: []byte("x")}}},
	} {
		tx.Tenant = tenant
		if err := f.store.Commit(f.Context(), tx); fault.KindOf(err) != fault.Invalid {
			f.Errorf("%s: %v", name, err)
		}
	}
}

func testUnknown(f *fixture) {
	f.begin("s1", "r1")
	for name, tx := range map[string]*store.Tx{
		"fence":        {Fences: []store.Fence{{RunID: "no", Epoch: 1}}},
		"run":          {NewRuns: []*store.Run{run("r2", "no", "queued")}},
		"entry":        {Entries: []*store.Entry{entry("no", "e1", "")}},
		"leaf":         {Leaves: []store.Leaf{{SessionID: "no"}}},
		"change":       {Runs: []store.RunChange{change("no", "completed", 1)}},
		"input":        {Inputs: []*store.Input{{RunID: "no", ID: "e1"}}},
		"drop input":   {DropInputs: []store.InputRef{{RunID: "r1", ID: "no"}}},
		"interrupt":    {NewInterrupts: []*store.Interrupt{interrupt("i1", "no")}},
		"answer":       {Answers: []store.InterruptChange{{ID: "no", InterruptAnswer: store.InterruptAnswer{Status: "answered"}}}},
		"event":        {Events: []*store.Event{event("no", 1)}},
		"trace":        {Trace: []*store.Trace{{RunID: "no", Kind: "x"}}},
		"usage":        {Usage: []*store.Usage{{RunID: "no"}}},
		"usage 2":      {Usage: []*store.Usage{{SessionID: "no"}}},
		"blob use":     {BlobUses: []store.BlobUse{{SessionID: "s1", BlobID: strings.Repeat("0", 64)}}},
		"blob use 2":   {Blobs: []*store.Blob{newBlob("x", "", "")}, BlobUses: []store.BlobUse{{SessionID: "no", BlobID: newBlob("x", "", "").ID}}},
		"drop session": {DropSessions: []string{"no"}},
	} {
		f.named(name).refused(tx, store.ErrNotFound)
	}
	f.notFound(tenant, "no", "no", "no", strings.Repeat("0", 64))
}

func testPayloads(f *fixture) {
	f.begin("s1", "r1")
	// JSON is kept byte for byte, and need not be JSON.
	odd := []json.RawMessage{json.RawMessage("{ \"b\" : 1,\n\"a\":2.0 }"), json.RawMessage("not json"), json.RawMessage("\x00\xff"),
		json.RawMessage(strings.Repeat("the same again ", 20_000)), bytes.Repeat([]byte{0}, 100_000), json.RawMessage(`"😀\ud83d"`)}
	tx := &store.Tx{}
	for i, p := range odd {
		id := string(rune('a' + i))
		e := entry("s1", id, "")
		e.RunID, e.Body = "r1", p
		tx.Entries = append(tx.Entries, e)
		ev := event("r1", int64(i+1))
		ev.Data = p
		tx.Events = append(tx.Events, ev)
		tx.Trace = append(tx.Trace, &store.Trace{RunID: "r1", Kind: "odd", Body: p})
	}
	c := change("r1", "running", 1)
	c.State = bytes.Repeat([]byte("state "), 50_000)
	tx.Runs = []store.RunChange{c}
	f.commit(tx)
	f.again()
	equal(f, "entries", ok[[]*store.Entry](f)(f.store.Entries(f.Context(), tenant, "s1", "", 0)), tx.Entries)
	equal(f, "events", ok[[]*store.Event](f)(f.store.Events(f.Context(), tenant, "r1", 0, 0)), tx.Events)
	equal(f, "trace", ok[[]*store.Trace](f)(f.store.Trace(f.Context(), tenant, "r1", 0, 0)), tx.Trace)
	equal(f, "state", ok[*store.Run](f)(f.store.Run(f.Context(), tenant, "r1")).State, c.State)
}
