package client_test

import (
	"testing"

	"agentd/client"
	"agentd/fault"
)

func TestMemory(t *testing.T) {
	c, _, _ := serve(t)
	ctx, kim := timeout(t), client.MemoryQuery{User: "kim"}
	req := client.MemoryRequest{Text: "Answer in German", Section: "Preferences"}
	m, err := c.Remember(ctx, req, kim)
	if err != nil || m.Text != req.Text || m.Section != req.Section || m.Scope != "global" || m.Origin != "person" || m.Date == "" {
		t.Fatalf("%+v, %v", m, err)
	}
	if again, err := c.Remember(ctx, req, kim); err != nil || again.ID != m.ID {
		t.Errorf("again: %+v, %v", again, err)
	}
	if all, err := c.Memories(ctx, client.MemoryQuery{User: "lee"}); err != nil || len(all) != 0 {
		t.Errorf("another user's: %+v, %v", all, err)
	}
	if all, err := c.Memories(ctx, kim); err != nil || len(all) != 1 || *all[0] != *m {
		t.Errorf("%+v, %v", all, err)
	}
	edited, err := c.EditMemory(ctx, m.ID, "Answer in Dutch", "", kim)
	if err != nil || edited.Text != "Answer in Dutch" || edited.Section != "Preferences" {
		t.Fatalf("%+v, %v", edited, err)
	}
	if got, err := c.Memory(ctx, edited.ID, kim); err != nil || *got != *edited {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.TrustMemory(ctx, nil, kim); err != nil || len(got) != 0 {
		t.Errorf("there is nothing to trust: %+v, %v", got, err)
	}
	if _, err := c.TrustMemory(ctx, []string{"mem_no"}, kim); fault.KindOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	if err := c.Forget(ctx, edited.ID, kim); err != nil {
		t.Error(err)
	}
	if err := c.Forget(ctx, edited.ID, kim); fault.KindOf(err) != fault.NotFound {
		t.Errorf("removed twice: %v", err)
	}
	if _, err := c.Remember(ctx, client.MemoryRequest{Text: "password: hunter2hunter2"}, kim); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a secret: %v", err)
	}
}
