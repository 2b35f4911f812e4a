package agentd_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"agentd"
	"agentd/event"
	"agentd/fault"
	"agentd/internal/store/postgres/pgtest"
)

const asker = `profile_name: asker
primary_model: {provider: script, model: m, script: scripts/ask.yaml}
tools: {builtin: [ask_user_question]}
`

const askScript = `name: ask
turns:
  - tool_calls: [{name: ask_user_question, arguments: {question: "Which colour?", choices: [red, blue]}}]
    usage: {input: 100, output: 10}
  - text: "Then it is {{.Last.Text}}"
    usage: {input: 100, output: 10}
`

func open(t *testing.T, configs, place string) *agentd.Runtime {
	t.Helper()
	rt, err := agentd.Open(t.Context(), agentd.Config{Configs: configs, Data: place})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func shut(t *testing.T, rt *agentd.Runtime) {
	t.Helper()
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
}

// ask starts a run and waits for its question.
func ask(t *testing.T, rt *agentd.Runtime) *agentd.Run {
	t.Helper()
	r, err := rt.Start(t.Context(), agentd.StartRequest{Profile: "asker", Input: agentd.Text("Paint it")})
	if err != nil {
		t.Fatal(err)
	}
	for ev, err := range rt.Watch(t.Context(), r.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Type == event.CheckpointRequired {
			return r
		}
	}
	t.Fatal("it asked nothing")
	return nil
}

// answer answers the question of a run and waits for its end.
func answer(t *testing.T, rt *agentd.Runtime, id string) *agentd.Run {
	t.Helper()
	r, err := rt.Get(t.Context(), id)
	if err != nil || len(r.Interrupts) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := rt.Answer(t.Context(), agentd.AnswerRequest{Interrupt: r.Interrupts[0].ID, Answer: []byte(`"blue"`)}); err != nil {
		t.Fatal(err)
	}
	if r, err = rt.Wait(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return r
}

// A store goes from a folder to a database and back, with runs that wait for a person:
// one is answered at each place.
func TestCopyStore(t *testing.T) {
	c := pgtest.Start(t)
	ctx := t.Context()
	configs := write(t, map[string]string{"agents/asker.yaml": asker, "scripts/ask.yaml": askScript})
	places := []string{filepath.Join(t.TempDir(), "a"), c.NewURL(), filepath.Join(t.TempDir(), "b"), c.NewURL(), c.NewURL()}
	rt := open(t, configs, places[0])
	key, _, err := rt.CreateKey(ctx, agentd.KeyRequest{Name: "k", Scopes: []agentd.Scope{"run"}})
	if err != nil {
		t.Fatal(err)
	}
	var waiting []string
	for range places {
		waiting = append(waiting, ask(t, rt).ID)
	}
	if _, err := agentd.CopyStore(ctx, places[0], places[1], nil); fault.KindOf(err) != fault.Conflict {
		t.Errorf("copied under a runtime that uses the source: %v", err)
	}
	shut(t, rt)
	for i, place := range places {
		if i > 0 {
			rows := map[string]int64{}
			r, err := agentd.CopyStore(ctx, places[i-1], place, func(t agentd.CopiedTable) { rows[t.Table] = t.Rows })
			if err != nil {
				t.Fatalf("to %s: %v", place, err)
			}
			if len(r.Check.Findings) > 0 || r.Unfinished != len(places)-i || rows["runs"] != int64(len(places)) || rows["journal"] == 0 || rows["usage"] == 0 {
				t.Errorf("to %s: %+v, %d unfinished, %v", place, r.Check, r.Unfinished, rows)
			}
			if _, err := agentd.CopyStore(ctx, places[i-1], place, nil); fault.KindOf(err) != fault.Conflict {
				t.Errorf("into a store that is not empty: %v", err)
			}
		}
		rt := open(t, configs, place)
		if i > 0 {
			if _, err := agentd.CopyStore(ctx, places[i-1], place, nil); fault.KindOf(err) != fault.Conflict {
				t.Errorf("copied under a runtime that uses the target: %v", err)
			}
		}
		if r := answer(t, rt, waiting[i]); r.Status != "completed" {
			t.Errorf("%s: %+v", place, r)
		}
		for _, id := range waiting[:i+1] { // also what other stores wrote
			events, err := rt.Events(ctx, id, 0)
			if err != nil || len(events) < 8 || !events[len(events)-1].Type.Terminal() {
				t.Errorf("%s: %d events of %s, %v", place, len(events), id, err)
			}
		}
		if keys, _, err := rt.Keys(ctx, "", "", 0); err != nil || len(keys) != 1 || keys[0].ID != key.ID {
			t.Errorf("%s: the keys %+v, %v", place, keys, err)
		}
		shut(t, rt)
	}
	if _, err := agentd.CopyStore(ctx, filepath.Join(t.TempDir(), "none"), c.NewURL(), nil); fault.KindOf(err) != fault.NotFound {
		t.Errorf("from nowhere: %v", err)
	}
	if _, err := agentd.CopyStore(ctx, c.NewURL(), t.TempDir(), nil); fault.KindOf(err) != fault.NotFound {
		t.Errorf("from an empty database: %v", err)
	}
	// One that fails leaves the target as it was.
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	empty := filepath.Join(t.TempDir(), "empty")
	if _, err := agentd.CopyStore(cancelled, places[3], empty, func(c agentd.CopiedTable) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("a copy that nobody waits for: %v", err)
	}
	if _, err := agentd.CopyStore(ctx, places[3], empty, nil); err != nil {
		t.Errorf("after one that failed: %v", err)
	}
}

// A runtime on PostgreSQL is one like any other.
func TestRuntimeOnPostgres(t *testing.T) {
	c := pgtest.Start(t)
	url := c.NewURL()
	configs := write(t, map[string]string{"agents/asker.yaml": asker, "scripts/ask.yaml": askScript})
	rt := open(t, configs, url)
	waits := ask(t, rt)
	// The server ends; the runtime goes on when it is back.
	c.Kill(t)
	c.Restart(t)
	if r := answer(t, rt, waits.ID); r.Status != "completed" || r.Output != "Then it is blue" {
		t.Errorf("%+v", r)
	}
	// Another process looks at it, and takes over what this one leaves.
	look, err := agentd.Open(t.Context(), agentd.Config{Configs: configs, Data: url, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if runs, _, err := look.Runs(t.Context(), "", "", "", 0); err != nil || len(runs) != 1 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	shut(t, look)
	left := ask(t, rt)
	shut(t, rt)
	rt = open(t, configs, url)
	defer shut(t, rt)
	if r := answer(t, rt, left.ID); r.Status != "completed" {
		t.Errorf("%+v", r)
	}
	report, err := agentd.CheckStore(t.Context(), url, false)
	if err != nil || len(report.Findings) > 0 || report.Runs != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := agentd.CheckStore(t.Context(), url, true); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a repair under a runtime: %v", err)
	}
}
