package profile

// Database is how a PostgreSQL store is used (`store`); the embedded store does without.
type Database struct {
	// Most connections at a time, besides three of each node: one that shows the others that the store is in use, one for its lease and what it tells others, one to hear them. All nodes together must stay below the server's `max_connections`. 0: two for each processor, at least 8.
	MaxConnections int `json:"max_connections" default:"0" min:"0" max:"10000"`
	// How long a commit or a read is tried again when the server can not be reached or is starting. After that a run is left as it was last committed, and taken up again when the server answers.
	RetryFor Duration `json:"retry_for" default:"10s" min:"0s" max:"10m"`
	// A statement that takes longer is ended.
	StatementTimeout Duration `json:"statement_timeout" default:"30s" min:"1s" max:"1h"`
}
