package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

type providerFunc func(ctx context.Context) error

func (f providerFunc) Generate(ctx context.Context, _ *model.Request, _ func(model.StreamEvent)) (*message.Message, error) {
	if err := f(ctx); err != nil {
		return nil, err
	}
	return &message.Message{Role: message.RoleAssistant}, nil
}

func generate(ctx context.Context, p model.Provider) error {
	_, err := p.Generate(ctx, &model.Request{Model: "m"}, nil)
	return err
}

func overloaded() error {
	return &model.Error{Class: model.ClassOverloaded, Provider: "x", Status: 529}
}

// A provider that keeps failing is left alone for the cooldown, then one call
// finds out whether it works.
func TestProviderOpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Guards
		calls, fail := 0, overloaded()
		inner := providerFunc(func(context.Context) error { calls++; return fail })
		p := g.Provider("x", inner, Breaker{Failures: 3, Cooldown: time.Minute}, 0)
		for range 5 {
			generate(t.Context(), p)
		}
		if calls != 3 {
			t.Fatalf("%d calls", calls)
		}
		<-time.After(20 * time.Second)
		err := generate(t.Context(), p)
		var open *OpenError
		var merr *model.Error
		if !errors.As(err, &open) || !errors.As(err, &merr) || merr.Class != model.ClassOpen || merr.RetryAfter != 40*time.Second || open.Failures != 3 {
			t.Fatalf("%v %+v", err, merr)
		}
		if want := `provider "x" failed 3 times in a row and is left alone for 40s`; open.Error() != want {
			t.Errorf("%s", open)
		}
		// Another profile with the same limits finds it open, one with others does not.
		if err := generate(t.Context(), g.Provider("x", inner, Breaker{Failures: 3, Cooldown: time.Minute}, 0)); !errors.As(err, &open) {
			t.Error(err)
		}
		if err := generate(t.Context(), g.Provider("x", inner, Breaker{Failures: 9}, 0)); errors.As(err, &open) {
			t.Error(err)
		}
		calls = 0
		<-time.After(40 * time.Second)
		generate(t.Context(), p) // fails: open again
		generate(t.Context(), p)
		if calls != 1 {
			t.Errorf("%d calls to try", calls)
		}
		<-time.After(time.Minute)
		fail = nil
		for range 3 {
			if err := generate(t.Context(), p); err != nil {
				t.Error(err)
			}
		}
	})
}

// What a call says about its provider.
func TestWhatCounts(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	idle, stop := context.WithCancelCause(context.Background())
	stop(fault.New(fault.Timeout, "nothing came"))
	late, done := context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer done()
	cut := errors.New("cut")
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		want outcome
	}{
		{"an answer", context.Background(), nil, works},
		{"overloaded", context.Background(), overloaded(), fails},
		{"any error", context.Background(), cut, fails},
		{"a wrong request", context.Background(), &model.Error{Class: model.ClassInvalid}, works},
		{"too long a prompt", context.Background(), &model.Error{Class: model.ClassOverflow}, works},
		{"given up", gone, cut, nothing},
		{"given up as it failed", gone, overloaded(), nothing},
		{"the idle clock", idle, cut, fails},
		{"a deadline", late, cut, fails},
	} {
		if got := saysModel(tt.ctx, tt.err); got != tt.want {
			t.Errorf("model, %s: %d", tt.name, got)
		}
	}
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		want outcome
	}{
		{"an answer", context.Background(), nil, works},
		{"a server that is down", context.Background(), fault.New(fault.Unavailable, "down"), fails},
		{"too slow", late, fault.New(fault.Timeout, "slow"), fails},
		{"refused unsent", context.Background(), fault.New(fault.Forbidden, "denied"), nothing},
		{"given up", gone, fault.New(fault.Cancelled, "cancelled"), nothing},
	} {
		if got := saysTool(tt.ctx, tt.err); got != tt.want {
			t.Errorf("tool, %s: %d", tt.name, got)
		}
	}
}

// A trial call that is given up, or panics, must not leave its breaker neither open
// nor closed for ever.
func TestTrialsThatTellNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Guards
		var do func(ctx context.Context) error
		p := g.Provider("x", providerFunc(func(ctx context.Context) error { return do(ctx) }), Breaker{Failures: 1, Cooldown: time.Minute}, 0)
		do = func(context.Context) error { return overloaded() }
		generate(t.Context(), p)
		<-time.After(time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		do = func(ctx context.Context) error { cancel(); return ctx.Err() }
		generate(ctx, p)
		<-time.After(time.Minute)
		do = func(context.Context) error { panic("broken") }
		func() {
			defer func() { recover() }()
			generate(t.Context(), p)
		}()
		<-time.After(time.Minute)
		do = func(context.Context) error { return nil }
		if err := generate(t.Context(), p); err != nil {
			t.Error(err)
		}
		// While one call tries, the others are told to come back, at some time.
		do = func(context.Context) error { return overloaded() }
		generate(t.Context(), p)
		<-time.After(time.Minute)
		do = func(context.Context) error {
			do = nil
			var open *OpenError
			if err := generate(t.Context(), p); !errors.As(err, &open) || open.For <= 0 {
				t.Error(err)
			}
			return nil
		}
		generate(t.Context(), p)
	})
}

// A bulkhead lets a number of calls through; others wait, as long as they want to.
func TestBulkhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Guards
		var mu sync.Mutex
		running, most := 0, 0
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
			most = max(most, running)
		}
		p := g.Provider("x", providerFunc(func(context.Context) error {
			count(+1)
			<-time.After(time.Minute)
			count(-1)
			return nil
		}), Breaker{}, 2)
		began := time.Now()
		errs := make(chan error)
		for range 6 {
			go func() { errs <- generate(t.Context(), p) }()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
		defer cancel()
		var merr *model.Error
		if err := generate(ctx, p); !errors.As(err, &merr) || !strings.Contains(err.Error(), "waited for a free place") {
			t.Error(err)
		}
		for range 6 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if most != 2 || time.Since(began) != 3*time.Minute {
			t.Errorf("%d at once, %v", most, time.Since(began))
		}
	})
}

type toolFunc struct {
	spec tool.Spec
	f    func() (tool.Result, error)
}

func (t toolFunc) Spec() tool.Spec                                     { return t.spec }
func (t toolFunc) Run(context.Context, tool.Call) (tool.Result, error) { return t.f() }

// A server's breaker counts that the server does not answer, a tool's also that
// it answers with errors.
func TestTools(t *testing.T) {
	var g Guards
	answer := func() (tool.Result, error) { return tool.ErrorResult("no such file"), nil }
	down := func() (tool.Result, error) { return tool.Result{}, fault.New(fault.Unavailable, "down") }
	b := Breaker{Failures: 2}
	make1 := func(name, source string, f func() (tool.Result, error), own, server Breaker) tool.Tool {
		return g.Tool(toolFunc{tool.Spec{Name: name, Source: source}, f}, own, server)
	}
	opens := func(t1 tool.Tool) string {
		for range 2 {
			t1.Run(t.Context(), tool.Call{Name: t1.Spec().Name})
		}
		_, err := t1.Run(t.Context(), tool.Call{Name: t1.Spec().Name})
		var open *OpenError
		if !errors.As(err, &open) {
			return ""
		}
		if fault.KindOf(err) != fault.Unavailable || fault.HintOf(err) == "" {
			t.Errorf("%v", err)
		}
		return open.What
	}
	for _, tt := range []struct {
		t    tool.Tool
		want string
	}{
		{make1("a", "builtin", answer, b, b), `tool "a"`},
		{make1("b", "builtin", down, Breaker{}, b), ``},
		{make1("c", "mcp:s1", answer, Breaker{}, b), ``},
		{make1("c", "mcp:s1", answer, b, b), `tool "c" of MCP server "s1"`},
		{make1("c", "mcp:s2", answer, b, Breaker{}), `tool "c" of MCP server "s2"`},
		{make1("d", "mcp:s3", down, Breaker{}, b), `MCP server "s3"`},
	} {
		if got := opens(tt.t); got != tt.want {
			t.Errorf("%s of %s: %q is open, want %q", tt.t.Spec().Name, tt.t.Spec().Source, got, tt.want)
		}
	}
	// The server's other tools are left alone with it.
	other := make1("e", "mcp:s3", answer, Breaker{}, b)
	if _, err := other.Run(t.Context(), tool.Call{Name: "e"}); err == nil || !strings.Contains(err.Error(), `e was not called: MCP server "s3" failed 2 times in a row`) {
		t.Error(err)
	}
}

func TestNothingConfiguredIsNothingAround(t *testing.T) {
	var g Guards
	p := &providerFuncs{}
	if g.Provider("x", p, Breaker{}, 0) != model.Provider(p) {
		t.Error("a provider is wrapped")
	}
	inner := &toolFunc{}
	if g.Tool(inner, Breaker{}, Breaker{}) != tool.Tool(inner) {
		t.Error("a tool is wrapped")
	}
}

type providerFuncs struct{ providerFunc }

// What a tool answers with depends on who asks what: one tenant's mistakes close it
// for nobody else. A server that is down is down for everybody.
func TestAToolsBreakerIsATenantsOwn(t *testing.T) {
	var g Guards
	var down error
	spec := tool.Spec{Name: "read", Source: "mcp:files"}
	r := g.Tool(toolFunc{spec, func() (tool.Result, error) {
		return tool.ErrorResult("no such file"), down
	}}, Breaker{Failures: 2}, Breaker{Failures: 3})
	refused := func(tenant string) string {
		var open *OpenError
		if _, err := r.Run(t.Context(), tool.Call{Name: "read", Tenant: tenant}); errors.As(err, &open) {
			return open.What
		}
		return ""
	}
	refused("a")
	refused("a")
	if got := refused("a"); got != `tool "read" of MCP server "files"` {
		t.Errorf("%q is open", got)
	}
	if got := refused("b"); got != "" {
		t.Errorf("another tenant: %q is open", got)
	}
	down = fault.New(fault.Unavailable, "down")
	for _, tenant := range []string{"c", "d", "e"} {
		refused(tenant)
	}
	if got := refused("b"); got != `MCP server "files"` {
		t.Errorf("a server that is down: %q is open", got)
	}
}

// Who waits for a place is told, and told when there is one; who finds one is not.
func TestWaitingIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Guards
		release := make(chan struct{})
		p := g.Provider("x", providerFunc(func(context.Context) error { <-release; return nil }), Breaker{}, 1)
		told := [2]string{}
		done := make(chan error, 2)
		for i := range told {
			go func() {
				_, err := p.Generate(t.Context(), &model.Request{Model: "m"}, func(ev model.StreamEvent) { told[i] += string(ev.Type) + " " })
				done <- err
			}()
			synctest.Wait()
		}
		if told != [2]string{"", "waiting "} {
			t.Errorf("told %q", told)
		}
		close(release)
		for range told {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if told != [2]string{"", "waiting admitted "} {
			t.Errorf("told %q", told)
		}
	})
}

// What people see of breakers and bulkheads.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Guards
		if s := g.States(); s != nil {
			t.Errorf("%+v", s)
		}
		fail, open := overloaded(), make(chan struct{})
		inner := providerFunc(func(ctx context.Context) error {
			if ctx.Value(t) != nil {
				<-open
			}
			return fail
		})
		p := g.Provider("x", inner, Breaker{Failures: 1, Cooldown: time.Minute}, 1)
		g.Tool(toolFunc{tool.Spec{Name: "a", Source: "mcp:files"}, nil}, Breaker{Failures: 2}, Breaker{Failures: 3})
		see := func(want string) {
			t.Helper()
			var s []string
			for _, st := range g.States() {
				if st.Limit > 0 {
					s = append(s, fmt.Sprintf("%s: %d used, %d waiting of %d", st.Thing, st.Used, st.Waiting, st.Limit))
				} else {
					s = append(s, fmt.Sprintf("%s: %s (%d)", st.Thing, st.Circuit, st.Breaker.Failures))
				}
			}
			if got := strings.Join(s, "; "); got != want {
				t.Errorf("states: %s\nwant: %s", got, want)
			}
		}
		const rest = `; MCP server "files": closed (3)`
		see(`provider "x": closed (1); provider "x": 0 used, 0 waiting of 1` + rest)
		held := context.WithValue(t.Context(), t, true)
		done := make(chan error, 2)
		go func() { done <- generate(held, p) }()
		synctest.Wait()
		impatient, cancel := context.WithCancel(t.Context())
		go func() { done <- generate(impatient, p) }()
		synctest.Wait()
		see(`provider "x": closed (1); provider "x": 1 used, 1 waiting of 1` + rest)
		cancel()
		<-done
		close(open)
		<-done
		see(`provider "x": open (1); provider "x": 0 used, 0 waiting of 1` + rest)
		<-time.After(time.Minute)
		see(`provider "x": half_open (1); provider "x": 0 used, 0 waiting of 1` + rest)
		fail = nil
		if err := generate(t.Context(), p); err != nil {
			t.Error(err)
		}
		see(`provider "x": closed (1); provider "x": 0 used, 0 waiting of 1` + rest)
	})
}
