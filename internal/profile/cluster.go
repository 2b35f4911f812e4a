package profile

// Cluster is for nodes that share a PostgreSQL store; an embedded store has one process.
type Cluster struct {
	// What this node is called in logs and lists. Empty: the name of the machine and the number of the process.
	Name string `json:"name,omitempty" example:"agents-1"`
	// How long a node counts as alive after it was last heard of, and so how long its runs wait for another one when it dies. It is renewed five times as often; a node that can not do so stops its runs a fifth of this earlier.
	Lease Duration `json:"lease" default:"5s" min:"1s" max:"10m"`
	// How often a node looks in the store for what the others' notifications did not tell.
	PollInterval Duration `json:"poll_interval" default:"1s" min:"50ms" max:"1m"`
	// How often a node looks for schedules that were made or changed at others. One that starts a run looks at its schedule first, so that what was paused is paused everywhere at once.
	ScheduleInterval Duration `json:"schedule_interval" default:"10s" min:"1s" max:"10m"`
	// How long calls under way may take when a node stops, before its runs are given to others in the middle of them. A supervisor must wait longer before it kills.
	DrainTimeout Duration `json:"drain_timeout" default:"30s" min:"1s" max:"1h"`
	// Who decides which node drives a run: `store`, where every worker takes what there is, or Temporal as `temporal://HOST:PORT/NAMESPACE`. The flag `--engine` comes first. All nodes of a store must say the same.
	Engine string `json:"engine" default:"store" example:"temporal://temporal.example.com:7233/agents"`
	// What this node does, if not everything: `run` (it drives runs), `model` and `tool` (it makes calls that name no pool), `model.NAME` and `tool.NAME` (calls of models and tools with `pool: NAME`). A node makes such calls for all runs, and has others make what it does not serve. The flag `--pools` comes first.
	Pools []string `json:"pools,omitempty" format:"pools" example:"[run, model, tool]"`
	// Calls of one pool that this node makes for the runs of other nodes at the same time.
	MaxPoolCalls int `json:"max_pool_calls" default:"16" min:"1" max:"10000"`
	// How long a call waits for a node of its pool before it fails; a model's then goes to the next model. The time of the call itself begins when a node takes it.
	PoolWait Duration `json:"pool_wait" default:"10m" min:"1s" max:"24h"`
	// By what nodes tell each other at once what is new: PostgreSQL's NOTIFY, or NATS, for which agentd must be built with `-tags nats`. All nodes of a store must say the same.
	Bus string `json:"bus" default:"notify" enum:"notify,nats"`
	// How NATS is used.
	NATS NATS `json:"nats,omitzero"`
	// How Temporal is used.
	Temporal Temporal `json:"temporal,omitzero"`
}
