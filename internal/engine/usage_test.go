package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// TestUsageOfCutCalls: what a call used that was cancelled, or took too long, is in
// the sums, and said to be an estimate if it is one.
func TestUsageOfCutCalls(t *testing.T) {
	for _, how := range []string{"idle", "total", "cancel"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, func(ctx context.Context, _ int, _ *model.Request) (*message.Message, error) {
					<-ctx.Done()
					return nil, &model.Error{Class: model.ClassCancelled, Err: ctx.Err(), Usage: &message.Usage{Input: 7, Output: 2, TotalTokens: 9, Estimated: true}}
				})
				a := h.agents["test"]
				a.Settings.Retry.Max = 0
				a.ModelIdle, a.ModelTotal = time.Hour, time.Hour
				switch how {
				case "idle":
					a.ModelIdle = time.Second
				case "total":
					a.ModelTotal = time.Second
				}
				r := h.run("go")
				status := "failed"
				if how == "cancel" {
					synctest.Wait()
					h.cancel(r)
					status = "cancelled"
				}
				if r = h.ends(r, status); r.Usage.TotalTokens != 9 || !r.Usage.Estimated {
					t.Errorf("%+v", r.Usage)
				}
				sums, err := h.engine.Usage(t.Context(), store.DefaultTenant, 0, 0, "", "")
				if err != nil || len(sums) != 1 || sums[0].Input != 7 || sums[0].Output != 2 {
					t.Errorf("%+v %v", sums, err)
				}
				h.engine.Close()
				h.store.Close()
			})
		})
	}
}
