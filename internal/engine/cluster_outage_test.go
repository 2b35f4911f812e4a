package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/tool"
)

// inMemory is how many runs an engine drives.
func (e *Engine) inMemory() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.drivers)
}

// The answer of a store that was away may come when the lease is over for the node and
// not yet for the store. What the node was given under it is not its to drive, and above
// all not to keep: nobody would ever tell it of the run again.
func TestARunThatIsGivenAfterTheLeaseIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, oneCall("echo", `{}`), echoTool(tool.Read))
		good := n.store
		var away atomic.Bool
		answer := make(chan struct{})
		n.picky().set(func(tx *store.Tx) bool {
			if len(tx.NewRuns) > 0 && away.Load() {
				<-answer
			}
			return len(tx.Nodes) > 0 && away.Load()
		})
		a := n.node("a", true)
		n.store = good
		b := n.node("b", true)
		synctest.Wait()
		away.Store(true)
		accepted := make(chan *Run, 1)
		go func() { accepted <- n.started(a, StartRequest{}) }()
		pass(4500 * time.Millisecond)
		close(answer)
		r := <-accepted
		n.ended(b, r.ID, "completed")
		away.Store(false)
		pass(time.Minute)
		synctest.Wait()
		if k := a.inMemory(); k != 0 {
			t.Errorf("%d runs are in memory where none is driven", k)
		}
		n.ended(a, n.started(a, StartRequest{}).ID, "completed")
	})
}

// When a store comes back all nodes have lost their leases and join again, one after the
// other. Who waits for an answer is not told meanwhile that nobody is there to give it.
func TestNodesThatAreAboutToJoinAreNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, oneCall("echo", `{}`), asking(echoTool(tool.Once)))
		s := &awayStore{Store: n.store, Cluster: n.store.(store.Cluster), how: refuses, long: 12 * time.Second, back: make(chan struct{}), gone: make(chan struct{})}
		late := make(chan struct{})
		p := &pickyStore{Store: s}
		n.store = pickyCluster{p, s}
		api := n.node("api", false)
		n.node("worker", true)
		r := n.paused(n.started(api, StartRequest{}), 1)
		synctest.Wait()
		over := func(c chan struct{}) bool {
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		p.set(func(tx *store.Tx) bool {
			if len(tx.Mail) > 0 { // the question is in the store, and then that is away
				time.AfterFunc(time.Millisecond, func() { s.begin(1) })
			}
			join := len(tx.Nodes) > 0 && tx.Nodes[0].Join
			return join && !over(late) || len(tx.MailDone) > 0 && !over(s.back)
		})
		answered := make(chan error, 1)
		go func() {
			_, err := api.Answer(t.Context(), AnswerRequest{Interrupt: r.Interrupts[0].ID, Decision: "approve"})
			answered <- err
		}()
		<-s.back
		pass(3 * time.Second)
		close(late)
		if err := <-answered; err != nil {
			t.Error(err)
		}
		n.ended(api, r.ID, "completed")
	})
}

// How a store is away.
const (
	refuses = "it refuses"              // at once
	silent  = "it hears nothing"        // what it was asked it does when it is back
	mumbles = "its answers do not come" // before it is back: what it was asked is done at once
)

// awayStore is a store that one node can not reach for a while, from the moment that it
// asks for something the at-th time.
type awayStore struct {
	store.Store
	store.Cluster
	how      string
	long     time.Duration
	alone    bool // only that one question
	mu       sync.Mutex
	n, at    int
	question string
	back     chan struct{} // closed when it is
	gone     chan struct{} // closed when it begins
}

// away is what to wait for with a question, or nil.
func (s *awayStore) away(question string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if s.n == s.at {
		s.question = question
		time.AfterFunc(s.long, func() { close(s.back) })
		close(s.gone)
	}
	if s.at == 0 || s.n < s.at || s.alone && s.n != s.at {
		return nil
	}
	select {
	case <-s.back:
		return nil
	default:
		return s.back
	}
}

// begin counts from now on.
func (s *awayStore) begin(at int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n, s.at = 0, at
}

// count is how often it was asked since.
func (s *awayStore) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

func ask[T any](ctx context.Context, s *awayStore, question string, f func() (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	back := s.away(question)
	switch {
	case back == nil:
		return f()
	case s.how == refuses:
		return none, &fault.Error{Op: "test", Kind: fault.Unavailable, Err: store.ErrAway}
	case s.how == silent:
		select {
		case <-back:
			return f()
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	v, err := f()
	select {
	case <-back:
		return v, err
	case <-ctx.Done():
		return none, fmt.Errorf("%w: %w", store.ErrUnknown, ctx.Err())
	}
}

func (s *awayStore) Commit(ctx context.Context, tx *store.Tx) error {
	_, err := ask(ctx, s, "Commit", func() (struct{}, error) { return struct{}{}, s.Store.Commit(context.WithoutCancel(ctx), tx) })
	return err
}

func (s *awayStore) Run(ctx context.Context, tenant, id string) (*store.Run, error) {
	return ask(ctx, s, "Run", func() (*store.Run, error) { return s.Store.Run(ctx, tenant, id) })
}

func (s *awayStore) Load(ctx context.Context, tenant, id string) (*store.Run, error) {
	return ask(ctx, s, "Load", func() (*store.Run, error) { return s.Store.Load(ctx, tenant, id) })
}

func (s *awayStore) Inputs(ctx context.Context, tenant, id string) ([]*store.Input, error) {
	return ask(ctx, s, "Inputs", func() ([]*store.Input, error) { return s.Store.Inputs(ctx, tenant, id) })
}

func (s *awayStore) Session(ctx context.Context, tenant, id string) (*store.Session, error) {
	return ask(ctx, s, "Session", func() (*store.Session, error) { return s.Store.Session(ctx, tenant, id) })
}

func (s *awayStore) Entry(ctx context.Context, tenant, session, id string) (*store.Entry, error) {
	return ask(ctx, s, "Entry", func() (*store.Entry, error) { return s.Store.Entry(ctx, tenant, session, id) })
}

func (s *awayStore) Path(ctx context.Context, tenant, session, leaf string) ([]*store.Entry, error) {
	return ask(ctx, s, "Path", func() ([]*store.Entry, error) { return s.Store.Path(ctx, tenant, session, leaf) })
}

func (s *awayStore) Events(ctx context.Context, tenant, id string, after int64, limit int) ([]*store.Event, error) {
	return ask(ctx, s, "Events", func() ([]*store.Event, error) { return s.Store.Events(ctx, tenant, id, after, limit) })
}

func (s *awayStore) Rules(ctx context.Context, tenant, session string) ([]*store.Rule, error) {
	return ask(ctx, s, "Rules", func() ([]*store.Rule, error) { return s.Store.Rules(ctx, tenant, session) })
}

func (s *awayStore) Proposals(ctx context.Context, tenant, id string) ([]*store.Proposal, error) {
	return ask(ctx, s, "Proposals", func() ([]*store.Proposal, error) { return s.Store.Proposals(ctx, tenant, id) })
}

func (s *awayStore) Pots(ctx context.Context, tenant, id string, refs []store.PotRef) ([]store.Pot, error) {
	return ask(ctx, s, "Pots", func() ([]store.Pot, error) { return s.Store.Pots(ctx, tenant, id, refs) })
}

func (s *awayStore) Interrupt(ctx context.Context, tenant, id string) (*store.Interrupt, error) {
	return ask(ctx, s, "Interrupt", func() (*store.Interrupt, error) { return s.Store.Interrupt(ctx, tenant, id) })
}

func (s *awayStore) Interrupts(ctx context.Context, tenant string, f store.InterruptFilter) (all []*store.Interrupt, cursor string, err error) {
	all, err = ask(ctx, s, "Interrupts", func() (x []*store.Interrupt, err error) {
		x, cursor, err = s.Store.Interrupts(ctx, tenant, f)
		return x, err
	})
	return all, cursor, err
}

func (s *awayStore) Claim(ctx context.Context, q store.ClaimRequest) ([]store.Claimed, error) {
	return ask(ctx, s, "Claim", func() ([]store.Claimed, error) { return s.Cluster.Claim(ctx, q) })
}

func (s *awayStore) Claimed(ctx context.Context, node string) ([]store.Claimed, error) {
	return ask(ctx, s, "Claimed", func() ([]store.Claimed, error) { return s.Cluster.Claimed(ctx, node) })
}

func (s *awayStore) Mail(ctx context.Context, tenant, id string) ([]*store.Mail, error) {
	return ask(ctx, s, "Mail", func() ([]*store.Mail, error) { return s.Cluster.Mail(ctx, tenant, id) })
}

func (s *awayStore) Outcome(ctx context.Context, tenant, id, mail string) (*store.Mail, error) {
	return ask(ctx, s, "Outcome", func() (*store.Mail, error) { return s.Cluster.Outcome(ctx, tenant, id, mail) })
}

func (s *awayStore) Ahead(ctx context.Context, tenant, session string, now int64) (string, error) {
	return ask(ctx, s, "Ahead", func() (string, error) { return s.Cluster.Ahead(ctx, tenant, session, now) })
}

func (s *awayStore) Orphans(ctx context.Context, limit int) ([]store.RunRef, error) {
	return ask(ctx, s, "Orphans", func() ([]store.RunRef, error) { return s.Cluster.Orphans(ctx, limit) })
}

func (s *awayStore) Nodes(ctx context.Context, now int64) ([]*store.Node, error) {
	return ask(ctx, s, "Nodes", func() ([]*store.Node, error) { return s.Cluster.Nodes(ctx, now) })
}

func (s *awayStore) ClaimEffects(ctx context.Context, q store.EffectClaim) ([]*store.Effect, error) {
	return ask(ctx, s, "ClaimEffects", func() ([]*store.Effect, error) { return s.Cluster.ClaimEffects(ctx, q) })
}

func (s *awayStore) Effects(ctx context.Context, f store.EffectFilter) ([]*store.Effect, error) {
	return ask(ctx, s, "Effects", func() ([]*store.Effect, error) { return s.Cluster.Effects(ctx, f) })
}

// outage is a world of two nodes, of which one loses its way to the store.
type outage struct {
	how    string
	long   time.Duration
	alone  bool // it is one answer that does not come
	at     int
	pooled bool // what the runs of each node call the other one calls
}

// TestAnOutageAtEveryQuestion has a node lose its way to the store at every question that
// it asks, for so long that its lease is over when it finds it again, in the store's eyes
// too or not yet. Its runs go on elsewhere; it lets go of all of them, takes part again,
// and keeps nothing.
func TestAnOutageAtEveryQuestion(t *testing.T) {
	// All of it takes minutes. Neither number has a divisor in common with that of the ways
	// to be away, so that every question and every way has its turn.
	every := 13
	if underRace {
		every = 101
	}
	for _, pooled := range []bool{false, true} {
		want, asked, question := "", 0, ""
		synctest.Test(t, func(t *testing.T) { want, asked, _ = outage{pooled: pooled}.happens(t, "") })
		if asked < 10 { // commits that meet are one question, so there is no exact number
			t.Fatalf("%d questions", asked)
		}
		for at, part := 1, 0; at <= asked; at++ {
			for _, o := range []outage{{how: refuses, long: 4500 * time.Millisecond}, {how: refuses, long: 7 * time.Second},
				{how: silent, long: 4500 * time.Millisecond}, {how: silent, long: 7 * time.Second},
				{how: mumbles, long: 4500 * time.Millisecond}, {how: mumbles, long: 7 * time.Second},
				{how: silent, long: 12 * time.Second, alone: true}, {how: mumbles, long: 12 * time.Second, alone: true}} {
				if part++; part%every != 0 {
					continue
				}
				o.at, o.pooled = at, pooled
				t.Run(fmt.Sprintf("%d %s for %s alone=%v pooled=%v", at, o.how, o.long, o.alone, pooled), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { _, _, question = o.happens(t, want) })
					if t.Failed() {
						t.Logf("it was away from %s on", question)
					}
				})
			}
		}
	}
}

// happens gives the transcript of a run, how often the node asked while it was under way,
// and what it asked when it lost its way.
func (o outage) happens(t *testing.T, want string) (transcript string, asked int, question string) {
	calls := &counter{}
	script, tools := workload(calls)
	n := newNodes(t, script, tools...)
	s := &awayStore{Store: n.store, Cluster: n.store.(store.Cluster), how: o.how, long: o.long, alone: o.alone, back: make(chan struct{}), gone: make(chan struct{})}
	pools := func(mine ...string) func(*Config) {
		return func(c *Config) {
			if o.pooled {
				c.Cluster.Pools = mine
			}
		}
	}
	a := n.node("a", true, pools(PoolTool), func(c *Config) { c.Store = s })
	b := n.node("b", true, pools(PoolTool, PoolModel))
	synctest.Wait()
	s.begin(o.at)
	first := make(chan *Run, 1)
	go func() { first <- n.tried(a, "go") }()
	second := make(chan *Run, 1)
	go func() {
		select {
		case <-s.gone:
			second <- n.tried(a, "go")
		case <-t.Context().Done():
		}
	}()
	if o.at == 0 {
		r := n.ended(b, (<-first).ID, "completed")
		return n.transcriptAt(b, r), s.count(), ""
	}
	for _, accepted := range []<-chan *Run{first, second} {
		r := <-accepted
		uncertain := n.answerDone(b, r.ID)
		r = n.ended(b, r.ID, "completed")
		if transcript = n.transcriptAt(b, r); transcript != want && !uncertain {
			t.Errorf("the transcript differs:\n%s\nwant\n%s", transcript, want)
		}
	}
	pass(20 * time.Second)
	synctest.Wait()
	for name, e := range map[string]*Engine{"a": a, "b": b} {
		if k, made := e.inMemory(), e.PoolCallsMade(); k+made != 0 {
			t.Errorf("%s keeps %d runs and %d calls", name, k, made)
		}
		if err := e.Ready(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		n.ended(b, n.started(e, StartRequest{}).ID, "completed")
	}
	calls.mu.Lock()
	defer calls.mu.Unlock()
	for key, k := range calls.n {
		if strings.HasPrefix(key, "once ") && k > 4 {
			t.Errorf("%s ran %d times in four runs", key, k)
		}
	}
	return transcript, 0, s.question
}

// tried starts a run at a node, again until that is accepted: who is told that it can not
// be known asks again under the same key.
func (n *nodes) tried(e *Engine, input string) *Run {
	key := e.cfg.NewID()
	for {
		r, err := e.Start(n.t.Context(), StartRequest{Input: blocks(input), IdempotencyKey: key})
		if err == nil {
			return r
		}
		if n.t.Context().Err() != nil {
			return nil
		}
		<-time.After(100 * time.Millisecond)
	}
}

// transcriptAt is transcript at a node.
func (n *nodes) transcriptAt(e *Engine, r *Run) string {
	n.t.Helper()
	n.engine = e
	return n.transcript(r.SessionID)
}
