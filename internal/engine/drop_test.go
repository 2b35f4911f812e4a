package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// sessions gives the ids of what is listed, ephemeral or not.
func (h *harness) sessions(ephemeral bool) string {
	h.t.Helper()
	views, _, err := h.engine.Sessions(context.Background(), store.DefaultTenant, SessionFilter{Ephemeral: ephemeral, Limit: 100})
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, v := range views {
		if v.Ephemeral != ephemeral {
			h.t.Errorf("listed wrongly: %+v", v)
		}
		out = append(out, v.ID)
	}
	return strings.Join(out, " ")
}

func (h *harness) calls() (n int64) {
	h.t.Helper()
	views, err := h.engine.Usage(context.Background(), store.DefaultTenant, 0, 0, "", "")
	if err != nil {
		h.t.Fatal(err)
	}
	for _, v := range views {
		n += v.Calls
	}
	return n
}

// missing wants a thing to be gone, for whoever asks for it by name.
func (h *harness) missing(r *Run) {
	h.t.Helper()
	ctx := context.Background()
	for what, read := range map[string]func() error{
		"run":     func() error { _, err := h.engine.Get(ctx, ref(r.ID)); return err },
		"session": func() error { _, err := h.engine.Session(ctx, ref(r.SessionID)); return err },
		"events":  func() error { _, err := h.engine.Events(ctx, ref(r.ID), 0); return err },
		"entries": func() error { _, err := h.engine.Entries(ctx, ref(r.SessionID), "", 0); return err },
	} {
		if err := read(); fault.KindOf(err) != fault.NotFound {
			h.t.Errorf("%s of %s: %v", what, r.ID, err)
		}
	}
}

func pass(d time.Duration) { <-time.After(d) }

// Ephemeral sessions go, a day after their last run ended; others and the bill
// stay.
func TestEphemeralSessionsAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		h := newHarness(t, func(ctx context.Context, _ int, req *model.Request) (*message.Message, error) {
			if last := req.Messages[len(req.Messages)-1]; last.Text() == "slowly" {
				if err := g.pass(ctx); err != nil {
					return nil, err
				}
			}
			return say("Hello.")
		})
		h.agents["test"].ModelIdle = 1000 * time.Hour
		h.keep = 24 * time.Hour
		h.restart()
		kept := h.ends(h.begin(StartRequest{}), "completed")
		first := h.ends(h.begin(StartRequest{Ephemeral: true}), "completed")
		slow := h.begin(StartRequest{Ephemeral: true, Input: []message.Block{message.Text("slowly")}})
		if got := h.sessions(false); got != kept.SessionID {
			t.Errorf("listed: %s", got)
		}
		if got := h.sessions(true); got != slow.SessionID+" "+first.SessionID && got != first.SessionID+" "+slow.SessionID {
			t.Errorf("listed as ephemeral: %s", got)
		}
		pass(23 * time.Hour)
		synctest.Wait()
		h.ends(first, "completed") // it is still there
		again := h.ends(h.begin(StartRequest{SessionID: first.SessionID}), "completed")

		// Its last run counts, and one that goes on keeps its session.
		pass(23 * time.Hour)
		synctest.Wait()
		h.ends(again, "completed")
		pass(time.Hour + 2*sweepEvery)
		synctest.Wait()
		h.missing(first)
		h.missing(again)
		close(g.open)
		h.ends(slow, "completed")
		// The sweep goes on after a restart.
		h.restart()
		pass(23 * time.Hour)
		h.ends(slow, "completed")
		pass(time.Hour + 2*sweepEvery)
		synctest.Wait()
		h.missing(slow)
		h.ends(kept, "completed")
		if got := h.sessions(true); got != "" {
			t.Errorf("left: %s", got)
		}
		if got := h.calls(); got != 4 {
			t.Errorf("the bill has %d calls of 4", got)
		}
	})
}

// With a time of zero nothing is deleted.
func TestEphemeralSessionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, func(context.Context, int, *model.Request) (*message.Message, error) { return say("Hello.") })
		h.alone = true // nodes have much to tell each other in so long a time
		h.restart()
		r := h.ends(h.begin(StartRequest{Ephemeral: true}), "completed")
		pass(10000 * time.Hour)
		h.ends(r, "completed")
	})
}

// A pass is bounded, and what is left is deleted soon after.
func TestSweepIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, nil)
		tx := &store.Tx{Tenant: store.DefaultTenant}
		for i := range 2*sweepMost + 5 {
			tx.NewSessions = append(tx.NewSessions, &store.Session{ID: fmt.Sprint("s", i), Ephemeral: true, Created: 1, Updated: 1})
		}
		if err := h.store.Commit(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		h.keep = time.Hour
		h.restart()
		for _, want := range []int{sweepMost + 5, 5, 0} {
			synctest.Wait()
			left, _, err := h.store.Sessions(t.Context(), store.DefaultTenant, store.SessionFilter{Ephemeral: true, Limit: 1000})
			if err != nil || len(left) != want {
				t.Fatalf("%d are left, not %d (%v)", len(left), want, err)
			}
			pass(sweepPause)
		}
	})
}

// Subagents' sessions and artifacts are the session's too.
func TestDeleteSessionTakesItsFamily(t *testing.T) {
	h := family(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
		if step == 0 {
			return say("", call("b", "big", `{}`))
		}
		return say("42")
	}, toolFunc{tool.Spec{Name: "big", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.TextResult(strings.Repeat("much ", 20_000)), nil
	}})
	r := h.ends(h.begin(StartRequest{Ephemeral: true}), "completed")
	c := h.child(r)
	if got := h.sessions(false); got != "" {
		t.Errorf("the child's session is listed: %s", got)
	}
	_, artifact, ok := strings.Cut(h.transcript(c.SessionID), "stored as artifact ")
	if !ok {
		t.Fatalf("no artifact:\n%s", h.transcript(c.SessionID))
	}
	artifact = artifact[:64]
	if _, _, data, err := h.engine.Artifact(t.Context(), ref(artifact)); err != nil || len(data) != 100_000 {
		t.Fatal(len(data), err)
	}
	before := h.calls()
	if err := h.engine.DeleteSession(t.Context(), ref(r.SessionID)); err != nil {
		t.Fatal(err)
	}
	h.missing(r)
	h.missing(c)
	if _, _, _, err := h.engine.Artifact(t.Context(), ref(artifact)); fault.KindOf(err) != fault.NotFound {
		t.Errorf("the artifact: %v", err)
	}
	if got := h.calls(); got != before || got == 0 {
		t.Errorf("the bill has %d calls and had %d", got, before)
	}
	// The same again is the usual error, and nothing stays held.
	if err := h.engine.DeleteSession(t.Context(), ref(r.SessionID)); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
	h.engine.mu.Lock()
	defer h.engine.mu.Unlock()
	if len(h.engine.lanes) != 0 {
		t.Errorf("lanes: %v", h.engine.lanes)
	}
}

// A run in the session of a subagent keeps the whole family.
func TestDeleteSessionOfABusyFamily(t *testing.T) {
	g := newGate()
	h := family(t, func(ctx context.Context, _ int, req *model.Request) (*message.Message, error) {
		if last := req.Messages[len(req.Messages)-1]; last.Text() == "on" {
			if err := g.pass(ctx); err != nil {
				return nil, err
			}
		}
		return say("42")
	})
	r := h.ends(h.run("go"), "completed")
	c := h.child(r)
	busy, err := h.engine.Start(t.Context(), StartRequest{Profile: "kid", SessionID: c.SessionID, Input: []message.Block{message.Text("on")}})
	if err != nil {
		t.Fatal(err)
	}
	<-g.entered
	if err := h.engine.DeleteSession(t.Context(), ref(r.SessionID)); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), busy.ID) {
		t.Errorf("%v", err)
	}
	close(g.open)
	h.ends(busy, "completed")
	if err := h.engine.DeleteSession(t.Context(), ref(r.SessionID)); err != nil {
		t.Error(err)
	}
	h.missing(busy)
}

// dropHook deletes a session as soon as somebody has looked at it.
type dropHook struct {
	store.Store
	id string
}

func (s *dropHook) Session(ctx context.Context, tenant, id string) (*store.Session, error) {
	ses, err := s.Store.Session(ctx, tenant, id)
	if err == nil && id == s.id {
		err = s.Commit(ctx, &store.Tx{Tenant: tenant, DropSessions: []string{id}})
	}
	return ses, err
}

// A session may be deleted between the look at it and the commit of the run.
func TestStartInASessionThatIsJustDeleted(t *testing.T) {
	h := newHarness(t, hang)
	ses, err := h.engine.CreateSession(t.Context(), SessionRequest{Tenant: store.DefaultTenant})
	if err != nil {
		t.Fatal(err)
	}
	h.store = &dropHook{h.store, ses.ID}
	h.restart()
	_, err = h.engine.Start(t.Context(), StartRequest{SessionID: ses.ID, Input: []message.Block{message.Text("x")}})
	if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "deleted") {
		t.Errorf("%v", err)
	}
}
