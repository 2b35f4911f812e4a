package profile

// NATS is for nodes that tell each other what is new by NATS (`cluster.bus`): by a server inside each of them, or by servers of your own.
type NATS struct {
	// Servers of your own, core NATS without JetStream. None: a server inside this node, which is connected to those of the others.
	URLs []string `json:"urls,omitempty" example:"[nats://nats.example.com:4222]"`
	// Where the server inside this node takes connections of the others'. Anything but loopback needs `secret_env`.
	Listen string `json:"listen" default:"127.0.0.1:7422" example:"10.0.0.5:7422"`
	// Where other nodes listen; one that is up is enough, which tells of the rest.
	Routes []string `json:"routes,omitempty" example:"[10.0.0.5:7422, 10.0.0.6:7422]"`
	// Environment variable with the secret that nodes show each other, or with the token for `urls`.
	SecretEnv string `json:"secret_env,omitempty" format:"env" example:"AGENTD_NATS_SECRET"`
	// Credentials of a NATS user for `urls`, as `nsc` writes them.
	CredentialsFile string `json:"credentials_file,omitempty" example:"/etc/agentd/nats.creds"`
	// What messages are sent under. Stores that share the servers must differ in it.
	Subject string `json:"subject" default:"agentd" example:"agents-prod"`
	// Speak TLS with `urls`. Without files the machine's certificates decide whom to trust.
	TLS bool `json:"tls" default:"false"`
	// Certificates of whom to trust instead, in PEM form. Nodes with servers inside need all three files for TLS.
	CAFile string `json:"ca_file,omitempty" example:"/etc/agentd/nats-ca.pem"`
	// Certificate and key of this node, in PEM form.
	CertFile string `json:"cert_file,omitempty" example:"/etc/agentd/nats.pem"`
	// Key of that certificate.
	KeyFile string `json:"key_file,omitempty" example:"/etc/agentd/nats-key.pem"`
	// Name in the servers' certificates, if it is not the address's.
	ServerName string `json:"server_name,omitempty" example:"nats.example.com"`
}
