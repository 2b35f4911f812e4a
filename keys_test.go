package agentd

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"agentd/fault"
)

// Every setting of connections reaches the server.
func TestServerOptions(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agents/a.yaml"), "profile_name: a\nprimary_model: {provider: script, model: m}\n")
	write(t, filepath.Join(dir, "agentd.yaml"), `hosts: [h]
tls: {cert: c, key: k}
cors: {origins: ["http://o"]}
limits: {max_body_bytes: 2001}
http: {max_header_bytes: 5002, header_timeout: 3s, body_timeout: 4s, answer_timeout: 5s, write_timeout: 6s, idle_timeout: 7s, heartbeat: 8s, shutdown_grace: 9s, shutdown_delay: 10s, rejoin_window: 11s, user_header: X-User}
`)
	rt, err := Open(t.Context(), Config{Configs: dir, Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	o := rt.serverOptions()
	if o.Keys != rt.keys || !slices.Equal(o.Hosts, []string{"h"}) || o.CertFile != "c" || o.KeyFile != "k" || !slices.Equal(o.Origins, []string{"http://o"}) || o.MaxBody != 2001 || o.MaxHeader != 5002 || o.UserHeader != "X-User" {
		t.Errorf("%+v", o)
	}
	got := []time.Duration{o.HeaderTimeout, o.BodyTimeout, o.AnswerTimeout, o.WriteTimeout, o.IdleTimeout, o.Heartbeat, o.Grace, o.Delay, o.RejoinWindow}
	want := []time.Duration{3, 4, 5, 6, 7, 8, 9, 10, 11}
	for i := range want {
		want[i] *= time.Second
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

// A runtime is a tenant's; its keys are all tenants'.
func TestTenantOfARuntime(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	work := t.TempDir()
	id := ""
	for _, tenant := range []string{"acme", "", "default"} {
		rt, err := Open(t.Context(), Config{Data: data, Workspace: work, Tenant: tenant})
		if err != nil {
			t.Fatal(err)
		}
		if tenant == "acme" {
			s, err := rt.CreateSession(t.Context(), SessionRequest{Title: "x"})
			if err != nil {
				t.Fatal(err)
			}
			id = s.ID
			if _, _, err := rt.CreateKey(t.Context(), KeyRequest{Tenant: "globex"}); err != nil {
				t.Error(err)
			}
		} else if _, err := rt.Session(t.Context(), id); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%q sees acme's session: %v", tenant, err)
		}
		if all, _, err := rt.Keys(t.Context(), "", "", 0); err != nil || len(all) != 1 || all[0].Tenant != "globex" {
			t.Errorf("%+v, %v", all, err)
		}
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}
	rt, err := Open(t.Context(), Config{Data: data, Workspace: work, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	_, _, err1 := rt.CreateKey(t.Context(), KeyRequest{})
	_, err2 := rt.RevokeKey(t.Context(), "x")
	_, err3 := rt.KeylessServer()
	for _, err := range []error{err1, err2, err3} {
		if fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%v", err)
		}
	}
	if _, err := Open(t.Context(), Config{Tenant: "../x"}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
}
