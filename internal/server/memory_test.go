package server_test

import (
	"context"
	"strings"
	"testing"

	"agentd/fault"
	"agentd/internal/memory"
	"agentd/internal/server"
)

// remembered is the memory of every tenant: mem_1 is there.
type remembered struct{}

func entryOf(tenant string, q memory.Query) memory.Entry {
	return memory.Entry{ID: "mem_1", Scope: memory.Global, Section: "Context", Text: "of " + tenant + " " + q.User + " " + q.Profile, Origin: memory.Person, Date: "2026-01-02"}
}

func (remembered) List(_ context.Context, tenant string, q memory.Query) ([]memory.Entry, error) {
	if q.User == "nobody" {
		return nil, nil
	}
	return []memory.Entry{entryOf(tenant, q)}, nil
}

func (remembered) Get(_ context.Context, tenant, id string, q memory.Query) (memory.Entry, error) {
	if id != "mem_1" {
		return memory.Entry{}, fault.New(fault.NotFound, "there is no "+id)
	}
	return entryOf(tenant, q), nil
}

func (remembered) Add(_ context.Context, tenant string, e memory.Entry, q memory.Query) (memory.Entry, bool, error) {
	if e.Text == "" {
		return e, false, fault.New(fault.Invalid, "there is nothing to remember")
	}
	return entryOf(tenant, q), e.Text != "known", nil
}

func (r remembered) Edit(ctx context.Context, tenant, id, text, section string, q memory.Query) (memory.Entry, error) {
	e, err := r.Get(ctx, tenant, id, q)
	if text != "" {
		e.Text = text
	}
	if section != "" {
		e.Section = section
	}
	return e, err
}

func (r remembered) Remove(ctx context.Context, tenant, id string, q memory.Query) error {
	_, err := r.Get(ctx, tenant, id, q)
	return err
}

func (r remembered) Trust(ctx context.Context, tenant string, ids []string, q memory.Query) ([]memory.Entry, error) {
	for _, id := range ids {
		if _, err := r.Get(ctx, tenant, id, q); err != nil {
			return nil, err
		}
	}
	return r.List(ctx, tenant, q)
}

func TestMemory(t *testing.T) {
	a := start(t, &server.Options{Memories: remembered{}})
	const entry = `{"memory_id":"mem_1","scope":"global","section":"Context","text":"of default  ","origin":"person","date":"2026-01-02"}`
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/memory", "", 200, `{"memories":[` + entry + `]}`},
		{"GET", "/memory?user=kim&profile=p", "", 200, `of default kim p`},
		{"GET", "/memory?user=nobody", "", 200, `{"memories":[]}`},
		{"GET", "/memory?usr=kim", "", 400, `usr`},
		{"GET", "/memory/mem_1", "", 200, entry},
		{"GET", "/memory/no", "", 404, `no`},
		{"POST", "/memory", `{"text":"x","section":"Context","scope":"project"}`, 201, entry},
		{"POST", "/memory", `{"text":"known"}`, 200, entry},
		{"POST", "/memory", `{"txt":"x"}`, 400, `txt`},
		{"POST", "/memory", `{}`, 400, `nothing to remember`},
		{"PATCH", "/memory/mem_1", `{"text":"y"}`, 200, `"section":"Context","text":"y"`},
		{"PATCH", "/memory/no", `{"text":"y"}`, 404, `no`},
		{"POST", "/memory/trust", `{"memory_ids":["mem_1"]}`, 200, `{"memories":[` + entry + `]}`},
		{"POST", "/memory/trust?user=nobody", `{"all":true}`, 200, `{"memories":[]}`},
		{"POST", "/memory/trust", `{"memory_ids":["no"]}`, 404, `no`},
		{"POST", "/memory/trust", `{}`, 400, `memory_ids`},
		{"POST", "/memory/trust", `{"all":true,"memory_ids":["mem_1"]}`, 400, `memory_ids`},
		{"DELETE", "/memory/mem_1", "", 204, ``},
		{"DELETE", "/memory/no", "", 404, `no`},
	} {
		r := a.do(c.method, c.path, c.body)
		if r.status != c.status || !strings.Contains(string(r.body), c.want) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, r.status, r.body)
		}
		if c.status == 201 && r.header.Get("Location") != "/memory/mem_1" {
			t.Errorf("Location: %q", r.header.Get("Location"))
		}
	}
	if r := start(t, nil).do("GET", "/memory", ""); r.status != 501 {
		t.Errorf("%d %s", r.status, r.body)
	}
}
