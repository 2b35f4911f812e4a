package profile

// Temporal is for nodes whose runs are distributed by Temporal (`cluster.engine`).
type Temporal struct {
	// How the names of task queues begin: runs are driven on `PREFIX.run`, child runs on `PREFIX.child`. Installations that share a namespace and no store must differ in it.
	QueuePrefix string `json:"queue_prefix" default:"agentd" example:"agents-prod"`
	// How long a node may be silent before its runs are driven elsewhere. They go on there when the node's lease is over, too.
	Heartbeat Duration `json:"heartbeat" default:"3s" min:"1s" max:"10m"`
	// How often Temporal hears of each run that is driven, at the most; less than `heartbeat`. 1,000 active runs at 2 s are 500 requests a second, and a namespace takes 2,400 unless it is set up for more.
	HeartbeatThrottle Duration `json:"heartbeat_throttle" default:"2s" min:"100ms" max:"5m"`
	// How often a node looks in the store for runs of which Temporal was not told.
	SweepInterval Duration `json:"sweep_interval" default:"10s" min:"1s" max:"10m"`
	// Child runs that one node drives at the same time, besides `limits.max_concurrent_runs`. Parents wait for them in their own places, so it must not be small.
	MaxConcurrentChildren int `json:"max_concurrent_children" default:"16384" min:"16" max:"1000000"`
	// Workflows that a node keeps in memory between two tasks of theirs, those that went on elsewhere included.
	MaxCachedWorkflows int `json:"max_cached_workflows" default:"512" min:"1" max:"100000"`
	// Speak TLS. Without files the machine's certificates decide whom to trust. An API key implies it.
	TLS bool `json:"tls" default:"false"`
	// Certificates of whom to trust instead, in PEM form.
	CAFile string `json:"ca_file,omitempty" example:"/etc/agentd/temporal-ca.pem"`
	// Certificate and key of this node, in PEM form, where the server asks for them.
	CertFile string `json:"cert_file,omitempty" example:"/etc/agentd/temporal.pem"`
	// Key of that certificate.
	KeyFile string `json:"key_file,omitempty" example:"/etc/agentd/temporal-key.pem"`
	// Name in the server's certificate, if it is not the address's.
	ServerName string `json:"server_name,omitempty" example:"temporal.example.com"`
	// Environment variable with the API key of Temporal Cloud.
	APIKeyEnv string `json:"api_key_env,omitempty" format:"env" example:"TEMPORAL_API_KEY"`
}
