package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/message"
	"agentd/tool"
)

// Calls of models and tools may be made at other nodes than the run's home: at those
// that serve the call's pool (docs/cluster.md). The home writes the call into the
// store's ledger with the intent (pool_home.go), a node of the pool takes it under its
// lease and leaves the result there (pool_make.go), and the home goes on with that as
// with one of its own.

// The pools of calls that name none.
const (
	PoolModel = "model"
	PoolTool  = "tool"
)

// poolVersion is the version of what is asked of pools: a node leaves newer ones alone.
const poolVersion = 1

// Kinds of calls in the ledger.
const (
	poolKindTool  = "tool"
	poolKindModel = "model"
)

// maxPoolResult bounds the bytes of a result as it is stored for its home.
const maxPoolResult = 32 << 20

// toolPool is the pool of a tool.
func toolPool(s *tool.Spec) string {
	if s.Pool != "" {
		return s.Pool
	}
	return PoolTool
}

// pool is the pool of a model.
func (m *Model) pool() string {
	if m.Pool != "" {
		return m.Pool
	}
	return PoolModel
}

// serves is whether calls of a pool are made here.
func (n *node) serves(pool string) bool {
	return n.cfg.Pools == nil || slices.Contains(n.cfg.Pools, pool)
}

// makes is whether this node makes calls of the runs of others.
func (n *node) makes() bool { return len(n.pools()) > 0 }

// pools is what others are told of it; "*" is all of them.
func (n *node) pools() []string {
	switch {
	case n.cfg.Named, n.cfg.Pools == nil && !n.cfg.Worker:
		return nil
	case n.cfg.Pools == nil:
		return []string{"*"}
	}
	return slices.DeleteFunc(slices.Clone(n.cfg.Pools), func(p string) bool { return p == "run" })
}

// poolCall is what is asked of a pool.
type poolCall struct {
	Tool  *poolTool  `json:"tool,omitempty"`
	Model *poolModel `json:"model,omitempty"`
}

// poolTool is a call of a tool. Arguments that a person changed are read from the
// interrupt, as at home.
type poolTool struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Args        json.RawMessage `json:"args,omitempty"`
	Interrupt   string          `json:"interrupt,omitempty"`
	Key         string          `json:"key"`
	Session     string          `json:"session"`
	Step        int             `json:"step"`
	Traceparent string          `json:"traceparent,omitempty"`
	Untrusted   bool            `json:"untrusted,omitempty"`
}

// poolResult is what a pool answers.
type poolResult struct {
	Tool  *poolToolResult  `json:"tool,omitempty"`
	Model *poolModelResult `json:"model,omitempty"`
}

type poolToolResult struct {
	Content    []message.Block `json:"content,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"`
	IsError    bool            `json:"is_error,omitempty"`
	Terminate  bool            `json:"terminate,omitempty"`
	DurationMS int64           `json:"duration_ms,omitempty"`
}

// callRef names a call in the ledger.
type callRef struct {
	Ref
	call string
}

// poolNode is what a node keeps of pools. The node's lock guards it.
type poolNode struct {
	// waited are calls that homes here wait for, made those that are made here, by the
	// keys of their rows.
	waited map[callRef]*waited
	made   map[int64]*making
	kicks  chan struct{}
}

func newPoolNode() poolNode {
	return poolNode{waited: map[callRef]*waited{}, made: map[int64]*making{}, kicks: make(chan struct{}, 1)}
}

// takePool is what a note about pools makes this node do.
func (n *node) takePool(x note) {
	switch x.Kind {
	case noteAsk:
		if n.makes() && n.serves(x.ID) {
			ring(n.pool.kicks)
		}
	case noteStop:
		n.mu.Lock()
		for _, m := range n.pool.made {
			if m.ref == (callRef{x.ref(), x.ID}) {
				m.cancel(errStopped)
			}
		}
		n.mu.Unlock()
	case noteResult, noteNews:
		n.mu.Lock()
		w := n.pool.waited[callRef{x.ref(), x.ID}]
		n.mu.Unlock()
		if w != nil {
			w.hear(x)
		}
	}
}

// wakeWaited has homes here look at all calls that they wait for, after the bus lost
// something, or at one.
func (n *node) wakeWaited(only ...callRef) {
	n.mu.Lock()
	var all []*waited
	if len(only) == 0 {
		all = slices.Collect(maps.Values(n.pool.waited))
	}
	for _, ref := range only {
		if w := n.pool.waited[ref]; w != nil {
			all = append(all, w)
		}
	}
	n.mu.Unlock()
	for _, w := range all {
		w.hear(note{Kind: noteResult})
	}
}

// tendWaited looks for calls whose owners are gone and which nobody will take: their
// homes decide.
func (n *node) tendWaited() {
	n.mu.Lock()
	waits := len(n.pool.waited) > 0
	n.mu.Unlock()
	if !waits {
		return
	}
	lost, err := n.st.Effects(n.e.ctx, store.EffectFilter{Lost: true, Now: n.now()})
	if err != nil {
		return // it is looked for again
	}
	for _, x := range lost {
		n.wakeWaited(callRef{Ref{x.Tenant, x.RunID}, x.ID})
	}
}

// PoolLoad is what there is to do for a pool.
type PoolLoad struct {
	store.PoolLoad
	// Nodes are how many nodes serve it.
	Nodes int
}

// PoolLoads says how many calls wait for pools, or are made, and how many nodes serve
// those, by name. An engine that is alone has none.
func (e *Engine) PoolLoads(ctx context.Context) ([]PoolLoad, error) {
	n := e.node
	if n == nil {
		return nil, nil
	}
	loads, err := n.st.Pools(ctx)
	if err != nil || len(loads) == 0 {
		return nil, err
	}
	nodes, err := n.st.Nodes(ctx, n.now())
	if err != nil {
		return nil, err
	}
	out := make([]PoolLoad, len(loads))
	for i, l := range loads {
		out[i] = PoolLoad{PoolLoad: l, Nodes: served(nodes, l.Pool)}
	}
	return out, nil
}

// PoolCallsMade is how many calls are made here for the runs of other nodes.
func (e *Engine) PoolCallsMade() int {
	if e.node == nil {
		return 0
	}
	e.node.mu.Lock()
	defer e.node.mu.Unlock()
	return len(e.node.pool.made)
}

func served(nodes []*store.Node, pool string) (k int) {
	for _, x := range nodes {
		if slices.Contains(x.Pools, pool) || slices.Contains(x.Pools, "*") {
			k++
		}
	}
	return k
}

// Pools is what this node does as Cluster.Pools says, and whether it drives runs; an
// engine that is alone does everything.
func (e *Engine) Pools() (pools []string, drives bool) {
	if e.node == nil {
		return nil, true
	}
	return slices.Clone(e.node.cfg.Pools), e.node.cfg.Worker
}

// poolWait is how long a call waits for a node of its pool.
func (n *node) poolWait() time.Duration {
	if n.cfg.PoolWait > 0 {
		return n.cfg.PoolWait
	}
	return 10 * time.Minute
}

// poolCalls is how many calls of one pool are made here at a time.
func (n *node) poolCalls() int {
	if n.cfg.PoolCalls > 0 {
		return n.cfg.PoolCalls
	}
	return 16
}

// elsewhere is the error of applying a proposal at a node that does not serve the pool of
// its tool: it is made where it is decided, because its run has ended.
func elsewhere(p *store.Proposal, s *tool.Spec) error {
	return &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("proposal %s is for a tool of pool %s, which this node does not serve", p.ID, s.Pool),
		Hint: "Decide about it at a node that does: agentd serve --pools run,model,tool," + s.Pool + "."}
}
