package engine

import (
	"context"
	"slices"
	"testing"

	"agentd/internal/store"
	"agentd/message"
)

// pondering is a store that takes its time after it has stored the end of a run.
type pondering struct {
	store.Store
	g gate
}

func (s *pondering) Commit(ctx context.Context, tx *store.Tx) error {
	err := s.Store.Commit(ctx, tx)
	if slices.ContainsFunc(tx.Runs, func(c store.RunChange) bool { return c.Status == "completed" }) {
		s.g.entered <- struct{}{}
		<-s.g.open
	}
	return err
}

// Who has read in the store that a run has ended finds its session free, although
// the run's driver does not know of it yet.
func TestTheSessionIsFreeWhenTheEndIsStored(t *testing.T) {
	for name, use := range map[string]func(h *harness, session string) error{
		"a run that needs it free": func(h *harness, session string) error {
			_, err := h.engine.Start(h.t.Context(), StartRequest{SessionID: session, WhenBusy: Reject, Input: blocks("next")})
			return err
		},
		"a message": func(h *harness, session string) error {
			_, err := h.engine.Append(h.t.Context(), Ref{store.DefaultTenant, session}, message.User("aside"))
			return err
		},
		"the end of the session": func(h *harness, session string) error {
			return h.engine.DeleteSession(h.t.Context(), Ref{store.DefaultTenant, session})
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, hello)
			h.engine.Close()
			g := newGate()
			h.store = &pondering{h.store, g}
			h.start()
			defer close(g.open)
			r := h.run("go")
			<-g.entered
			if v, err := h.engine.Wait(t.Context(), ref(r.ID)); err != nil || v.Status != "completed" {
				t.Fatalf("%+v, %v", v, err)
			}
			if err := use(h, r.SessionID); err != nil {
				t.Error(err)
			}
		})
	}
}
