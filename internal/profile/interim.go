package profile

// ServerConfig is INTERIM.
type ServerConfig struct {
	// x
	Transport string `yaml:"transport" enum:"stdio,http" required:"true"`
	// x
	Command string `yaml:"command"`
	// x
	Args []string `yaml:"args"`
	// x
	Env map[string]string `yaml:"env"`
	// x
	URL string `yaml:"url"`
	// x
	Headers map[string]string `yaml:"headers"`
}
