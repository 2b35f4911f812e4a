package profile

// Cluster is for nodes that share a PostgreSQL store; an embedded store has one process.
type Cluster struct {
	// What this node is called in logs and lists. Empty: the name of the machine and the number of the process.
	Name string `json:"name,omitempty" example:"agents-1"`
	// How long a node counts as alive after it was last heard of, and so how long its runs wait for another one when it dies. It is renewed five times as often; a node that can not do so stops its runs a fifth of this earlier.
	Lease Duration `json:"lease" default:"5s" min:"1s" max:"10m"`
	// How often a node looks in the store for what the others' notifications did not tell.
	PollInterval Duration `json:"poll_interval" default:"1s" min:"50ms" max:"1m"`
	// How long calls under way may take when a node stops, before its runs are given to others in the middle of them. A supervisor must wait longer before it kills.
	DrainTimeout Duration `json:"drain_timeout" default:"30s" min:"1s" max:"1h"`
	// Who decides which node drives a run: `store`, where every worker takes what there is, or Temporal as `temporal://HOST:PORT/NAMESPACE`. The flag `--engine` comes first. All nodes of a store must say the same.
	Engine string `json:"engine" default:"store" example:"temporal://temporal.example.com:7233/agents"`
	// By what nodes tell each other at once what is new: PostgreSQL's NOTIFY, or NATS, for which agentd must be built with `-tags nats`. All nodes of a store must say the same.
	Bus string `json:"bus" default:"notify" enum:"notify,nats"`
	// How NATS is used.
	NATS NATS `json:"nats,omitzero"`
	// How Temporal is used.
	Temporal Temporal `json:"temporal,omitzero"`
}
