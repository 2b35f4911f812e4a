package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentd"
	"agentd/client"
	"agentd/event"
	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/timetable"
	"agentd/message"
)

// The client's types are its own; this holds them to what the server sends.
func TestTypesAreTheServers(t *testing.T) {
	same := map[reflect.Type]reflect.Type{
		reflect.TypeFor[engine.Run]():           reflect.TypeFor[client.Run](),
		reflect.TypeFor[engine.InterruptView](): reflect.TypeFor[client.Interrupt](),
		reflect.TypeFor[engine.SessionView]():   reflect.TypeFor[client.Session](),
		reflect.TypeFor[engine.EntryView]():     reflect.TypeFor[client.Entry](),
		reflect.TypeFor[engine.ProfileView]():   reflect.TypeFor[client.Profile](),
		reflect.TypeFor[engine.Budget]():        reflect.TypeFor[client.RunBudget](),
		reflect.TypeFor[engine.BudgetLimits]():  reflect.TypeFor[client.Budget](),
		reflect.TypeFor[engine.BudgetUsed]():    reflect.TypeFor[client.BudgetUsed](),
		reflect.TypeFor[engine.PotView]():       reflect.TypeFor[client.Pot](),
		reflect.TypeFor[engine.PotAmounts]():    reflect.TypeFor[client.PotAmounts](),
		reflect.TypeFor[engine.RuleView]():      reflect.TypeFor[client.Rule](),
		reflect.TypeFor[engine.ProposalView]():  reflect.TypeFor[client.Proposal](),
		reflect.TypeFor[timetable.View]():       reflect.TypeFor[client.Schedule](),
		reflect.TypeFor[timetable.LastRun]():    reflect.TypeFor[client.ScheduledRun](),
	}
	name := func(t reflect.Type) string {
		prefix := ""
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Pointer {
			prefix += t.Kind().String() + " "
			t = t.Elem()
		}
		if c, ok := same[t]; ok {
			t = c
		}
		return prefix + t.String()
	}
	for theirs, ours := range same {
		fields := reflect.VisibleFields(theirs)
		fields = slices.DeleteFunc(fields, func(f reflect.StructField) bool {
			return f.Tag.Get("json") == "-" && theirs == reflect.TypeFor[engine.Run]()
		})
		if len(fields) != ours.NumField() {
			t.Errorf("%s has %d fields, %s has %d", theirs, len(fields), ours, ours.NumField())
			continue
		}
		for i, a := range fields {
			b := ours.Field(i)
			if a.Name != b.Name || a.Tag != b.Tag || name(a.Type) != name(b.Type) {
				t.Errorf("%s.%s %s %s is %s %s %s here", theirs, a.Name, a.Type, a.Tag, b.Name, b.Type, b.Tag)
			}
		}
	}
}

func TestRunToItsEnd(t *testing.T) {
	c, rt, _ := serve(t)
	ctx := timeout(t)
	req := client.StartRequest{Profile: "demo", Input: []message.Block{message.Text("Have a look")}, Metadata: json.RawMessage(`{"ticket":7}`),
		Budget: &client.Budget{MaxSteps: 9}, IdempotencyKey: "once"}
	r, err := c.Start(ctx, req)
	if err != nil || r.ID == "" || r.SessionID == "" || r.Status == "" {
		t.Fatal(r, err)
	}
	events := watch(t, c, r.ID, 0)
	if again, err := c.Start(ctx, req); err != nil || again.ID != r.ID {
		t.Errorf("the repetition gave %+v, %v", again, err)
	}
	got, err := c.Run(ctx, r.ID)
	if err != nil || !got.Ended() || got.Status != client.Completed || !strings.Contains(got.Output, "Hello") {
		t.Errorf("%+v, %v", got, err)
	}
	if string(got.Metadata) != `{"ticket":7}` {
		t.Errorf("metadata %s", got.Metadata)
	}
	if b := got.Budget; b == nil || b.Limits != (client.Budget{MaxSteps: 9}) || b.Used.Steps != got.Steps || b.Used.ToolCalls == 0 {
		t.Errorf("budget %+v", b)
	}
	stored, err := rt.Events(ctx, r.ID, 0)
	if err != nil || flat(t, stored) != flat(t, events) {
		t.Errorf("watched\n%s\nstored (%v)\n%s", flat(t, events), err, flat(t, stored))
	}
	listed, err := c.Events(ctx, r.ID, 0)
	if err != nil || flat(t, listed) != flat(t, stored) {
		t.Errorf("listed (%v)\n%s\nstored\n%s", err, flat(t, listed), flat(t, stored))
	}
	entries, err := c.Entries(ctx, r.SessionID)
	if err != nil || len(entries) < 4 || entries[0].Message.Text() != "Have a look" {
		t.Errorf("entries %v, %v", entries, err)
	}
}

func TestListsAndSessions(t *testing.T) {
	c, _, _ := serve(t)
	ctx := timeout(t)
	var ids []string
	for range 3 {
		r := start(t, c, "demo")
		watch(t, c, r.ID, 0)
		ids = append([]string{r.ID}, ids...)
	}
	var got []string
	f := client.RunFilter{Limit: 2, Status: client.Completed}
	for pages := 1; ; pages++ {
		runs, cursor, err := c.Runs(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			got = append(got, r.ID)
		}
		if cursor == "" {
			if pages != 2 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		f.Cursor = cursor
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		t.Errorf("listed %v, not %v", got, ids)
	}
	if runs, _, err := c.Runs(ctx, client.RunFilter{SessionID: "ses_none"}); err != nil || len(runs) != 0 {
		t.Errorf("runs of no session: %v, %v", runs, err)
	}
	s, err := c.CreateSession(ctx, client.SessionRequest{Title: "A title", Metadata: json.RawMessage(`{"a":1}`)})
	if err != nil || s.Title != "A title" {
		t.Fatal(s, err)
	}
	if got, err := c.Session(ctx, s.ID); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%+v is not %+v, %v", got, s, err)
	}
	all, next, err := c.Sessions(ctx, client.SessionFilter{Limit: 3})
	if err != nil || len(all) != 3 || next == "" || all[0].ID != s.ID {
		t.Errorf("%v %q %v", all, next, err)
	}
	if rest, next, err := c.Sessions(ctx, client.SessionFilter{Cursor: next, Limit: 3}); err != nil || len(rest) != 1 || next != "" {
		t.Errorf("%v %q %v", rest, next, err)
	}
	if entries, err := c.Entries(ctx, s.ID); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
	if err := c.DeleteSession(ctx, s.ID); err != nil {
		t.Error(err)
	}
	_, err = c.Session(ctx, s.ID)
	isKind(t, err, fault.NotFound)
	profiles, err := c.Profiles(ctx)
	if err != nil || len(profiles) != 5 || profiles[1].Name != "demo" || profiles[1].Model != "script/demo-1" {
		t.Errorf("%+v, %v", profiles, err)
	}
}

func TestAnswers(t *testing.T) {
	for _, by := range []string{"run", "interrupt"} {
		t.Run(by, func(t *testing.T) {
			c, _, _ := serve(t)
			ctx := timeout(t)
			r := start(t, c, "ask")
			var open *event.Checkpoint
			for ev, err := range c.Watch(ctx, r.ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if d, ok := ev.Data.(*event.Checkpoint); ok {
					open = d
					break
				}
			}
			list, _, err := c.Interrupts(ctx, "open", "", 0)
			if err != nil || len(list) != 1 || list[0].ID != open.InterruptID || list[0].Prompt != "Which colour?" {
				t.Fatalf("%+v, %v", list, err)
			}
			req := client.AnswerRequest{Answer: json.RawMessage(`"blue"`), Reason: "it fits"}
			if by == "run" {
				req.Run = r.ID
			} else {
				req.Interrupt = open.InterruptID
			}
			got, err := c.Answer(ctx, req)
			if err != nil || got.Status != "answered" || string(got.Answer) != `"blue"` {
				t.Fatalf("%+v, %v", got, err)
			}
			watch(t, c, r.ID, 0)
			if r, err = c.Run(ctx, r.ID); err != nil || r.Output != "Then it is blue." {
				t.Errorf("%+v, %v", r, err)
			}
			_, err = c.Answer(ctx, client.AnswerRequest{Interrupt: open.InterruptID, Answer: json.RawMessage(`"red"`)})
			if f := isKind(t, err, fault.Conflict); f.Hint == "" {
				t.Error("a second answer has no hint")
			}
			if got, err := c.Interrupt(ctx, open.InterruptID); err != nil || got.Reason != "it fits" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	c, _, _ := serve(t)
	_, err := c.Answer(timeout(t), client.AnswerRequest{Decision: "approve"})
	isKind(t, err, fault.Invalid)
}

func TestSteeringAndCancel(t *testing.T) {
	c, rt, _ := serve(t)
	ctx := timeout(t)
	r := start(t, c, "stuck")
	for ev, err := range c.Watch(ctx, r.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Type == event.TextDelta {
			break
		}
	}
	if err := c.Steer(ctx, r.ID, []message.Block{message.Text("to the left")}); err != nil {
		t.Error(err)
	}
	if err := c.FollowUp(ctx, r.ID, []message.Block{message.Text("and then")}, client.ContextBlock{Kind: "tree", Text: "a.go"}); err != nil {
		t.Error(err)
	}
	isKind(t, c.Steer(ctx, r.ID, nil), fault.Invalid)
	isKind(t, c.Steer(ctx, r.ID, []message.Block{message.Text("x")}, client.ContextBlock{Kind: "memory", Text: "x"}), fault.Invalid)
	if _, err := c.Cancel(ctx, r.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	events := watch(t, c, r.ID, 0)
	if last := events[len(events)-1]; last.Type != event.RunCancelled {
		t.Errorf("it ended with %s", last.Type)
	}
	if r, err := rt.Get(ctx, r.ID); err != nil || r.Status != client.Cancelled {
		t.Errorf("%+v, %v", r, err)
	}
	isKind(t, c.FollowUp(ctx, r.ID, []message.Block{message.Text("more")}), fault.Conflict)
}

func TestErrorsOfTheServer(t *testing.T) {
	c, _, _ := serve(t)
	ctx := timeout(t)
	_, err := c.Run(ctx, "run_none")
	if f := isKind(t, err, fault.NotFound); f.Error() != "there is no run run_none" {
		t.Errorf("%q", f)
	}
	_, err = c.Start(ctx, client.StartRequest{Profile: "nobody", Input: []message.Block{message.Text("x")}})
	isKind(t, err, fault.NotFound)
	_, err = c.Start(ctx, client.StartRequest{Mode: "sideways", Input: []message.Block{message.Text("x")}})
	if f := isKind(t, err, fault.Invalid); f.Field != "mode" || f.Hint == "" {
		t.Errorf("%+v", f)
	}
	for _, id := range []string{"", ".", ".."} {
		_, err := c.Run(ctx, id)
		isKind(t, err, fault.Invalid)
	}
	_, err = c.Run(ctx, "a/../b?c#d")
	if f := isKind(t, err, fault.NotFound); f.Error() != "there is no run a/../b?c#d" {
		t.Errorf("%q", f)
	}
	for _, err := range c.Watch(ctx, "run_none", 0) {
		isKind(t, err, fault.NotFound)
	}
	_, err = c.CreateSession(ctx, client.SessionRequest{Metadata: json.RawMessage(`{"broken`)})
	isKind(t, err, fault.Invalid)
	ended, stop := context.WithCancel(ctx)
	stop()
	_, err = c.Run(ended, "x")
	if isKind(t, err, fault.Cancelled); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	late, stop := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer stop()
	_, err = c.Run(late, "x")
	isKind(t, err, fault.Timeout)
}

// Something other than agentd may answer.
func TestErrorsInBetween(t *testing.T) {
	for _, tt := range []struct {
		status     int
		typ, body  string
		kind       fault.Kind
		says, hint string
	}{
		{502, "text/html", "<html>bad</html>", fault.Unavailable, "the server answered 502 Bad Gateway", "agentd server"},
		{502, "text/plain; charset=utf-8", "no\n upstream ", fault.Unavailable, "the server answered 502 Bad Gateway: no upstream", "agentd server"},
		{404, "text/plain", "", fault.NotFound, "404", "agentd server"},
		{200, "text/html", "<html>hello</html>", fault.Unsupported, "can not be read", "agentd server"},
		{401, "application/json", `{"error":{"kind":"unauthorized","message":"no such key","hint":"Ask."}}`, fault.Unauthorized, "no such key", "Ask."},
		{409, "application/json", `{"error":{"kind":"brand_new","message":"later"}}`, fault.Conflict, "later", ""},
		{500, "application/json", `{"error":{"kind":"internal","message":"internal error","hint":"See request x."}}`, fault.Internal, "internal error", "request x"},
		{400, "application/json", `{"error":{}}`, fault.Invalid, "400", ""},
		{504, "", "", fault.Timeout, "504", ""},
	} {
		ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Authorization"); got != "Bearer secret-key" {
				t.Errorf("Authorization: %q", got)
			}
			w.Header().Set("Content-Type", tt.typ)
			w.WriteHeader(tt.status)
			_, _ = w.Write([]byte(tt.body))
		}))
		c := connect(t, ts.URL+"/prefix/", &client.Options{Key: "secret-key"})
		_, err := c.Run(timeout(t), "x")
		f := isKind(t, err, tt.kind)
		if !strings.Contains(f.Error(), tt.says) || !strings.Contains(f.Hint, tt.hint) || strings.Contains(f.Error()+f.Hint, "secret") {
			t.Errorf("%d %s: %q, %q", tt.status, tt.body, f, f.Hint)
		}
		ts.Close()
		_, err = c.Run(timeout(t), "x")
		if f := isKind(t, err, fault.Unavailable); !strings.Contains(f.Hint, "agentd serve") || strings.Contains(f.Error(), "secret") {
			t.Errorf("%q, %q", f, f.Hint)
		}
		for _, err := range c.Watch(timeout(t), "x", 0) { // the first connection is not tried twice
			isKind(t, err, fault.Unavailable)
		}
	}
}

func TestNew(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:7070", "ftp://x", "http://", "http://x?y=1", "://", "http://x/#a"} {
		if _, err := client.New(bad, nil); err == nil {
			t.Errorf("%q was taken", bad)
		} else if f := isKind(t, err, fault.Invalid); f.Hint == "" {
			t.Errorf("%q: no hint", bad)
		}
	}
}

// Long lists are read to their end.
func TestPages(t *testing.T) {
	const n = 450
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		after, _ := strconv.Atoi(q.Get("after")) // "" is 0
		limit, _ := strconv.Atoi(q.Get("limit"))
		if strings.HasSuffix(r.URL.Path, "/events") {
			limit = min(limit, 200) // a server may give less than it was asked for
		}
		var list []string
		last := after
		for i := after + 1; i <= n && len(list) < limit; i++ {
			last = i
			if strings.HasSuffix(r.URL.Path, "/events") {
				list = append(list, fmt.Sprintf(`{"v":1,"run_id":"r","seq":%d,"ts":"2026-01-01T00:00:00Z","type":"step_started","step":1,"data":{}}`, i))
			} else {
				list = append(list, fmt.Sprintf(`{"id":"%04d","kind":"label","created_at":""}`, i))
			}
		}
		items := strings.Join(list, ",")
		fmt.Fprintf(w, `{"entries":[%s],"events":[%s],"last_seq":%d,"more":%t}`, items, items, last, last < n)
	}))
	defer ts.Close()
	c := connect(t, ts.URL, nil)
	events, err := c.Events(timeout(t), "r", 0)
	if err != nil || len(events) != n || events[n-1].Seq != n {
		t.Errorf("%d events, %v", len(events), err)
	}
	entries, err := c.Entries(timeout(t), "s")
	if err != nil || len(entries) != n || entries[n-1].ID != "0450" {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

// A runtime that was opened to look says so instead of doing something.
func TestReadOnlyRuntime(t *testing.T) {
	data := t.TempDir()
	_, err := agentd.Open(t.Context(), agentd.Config{Data: data, ReadOnly: true})
	isKind(t, err, fault.NotFound)
	writing := open(t, data)
	ro, err := agentd.Open(t.Context(), agentd.Config{Data: data, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer ro.Close()
	ctx := timeout(t)
	r, err := writing.Start(ctx, agentd.StartRequest{Profile: "demo", Input: agentd.Text("x")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writing.Wait(ctx, r.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := ro.Get(ctx, r.ID); err != nil || got.Status != client.Completed {
		t.Errorf("%+v, %v", got, err)
	}
	for name, f := range map[string]func() error{
		"Start":         func() error { _, err := ro.Start(ctx, agentd.StartRequest{Input: agentd.Text("x")}); return err },
		"Steer":         func() error { return ro.Steer(ctx, r.ID, agentd.Text("x")) },
		"FollowUp":      func() error { return ro.FollowUp(ctx, r.ID, agentd.Text("x")) },
		"Cancel":        func() error { _, err := ro.Cancel(ctx, r.ID, ""); return err },
		"Answer":        func() error { _, err := ro.Answer(ctx, agentd.AnswerRequest{Run: r.ID}); return err },
		"CreateSession": func() error { _, err := ro.CreateSession(ctx, agentd.SessionRequest{}); return err },
		"Append":        func() error { _, err := ro.Append(ctx, r.SessionID, message.User("x")); return err },
		"Handler":       func() error { _, err := ro.Handler(); return err },
		"Server":        func() error { _, err := ro.Server(); return err },
		"DeleteSession": func() error { return ro.DeleteSession(ctx, r.SessionID) },
	} {
		if f := isKind(t, f(), fault.Unsupported); f.Op != "agentd."+name || f.Hint == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
