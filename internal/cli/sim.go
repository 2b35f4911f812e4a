package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"agentd/internal/sim"
	"agentd/model/script"
)

func (a *app) simCommand() *cobra.Command {
	var scripts []string
	o := sim.Options{}
	var noCache bool
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Serve a scripted model on the providers' real wire formats, for tests",
		Long: `Serve OpenAI Responses (/v1/responses) and Chat Completions
(/v1/chat/completions), both at Azure's paths (/openai/) too, Anthropic Messages
(/v1/messages), Gemini (/v1beta/models/…) and Ollama (/api/chat) from scripts,
with the faults that real services have. Point any client at it: the scripts'
format is in docs/scripts.md. Without a script it echoes.`,
		Example: `  agentd sim --script greet.yaml --addr 127.0.0.1:4010
  OPENAI_BASE_URL=http://127.0.0.1:4010/v1 OPENAI_API_KEY=x your-program`,
		Args: exactly(0, "no arguments; name scripts with --script"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, path := range scripts {
				s, err := script.Load(path)
				if err != nil {
					return &usageError{err}
				}
				o.Scripts = append(o.Scripts, s)
			}
			if noCache {
				o.CacheRules = sim.CacheOff
			}
			o.Log = a.logger()
			return sim.Serve(cmd.Context(), o, func(url string) {
				fmt.Fprintf(a.Err, "agentd sim listens on %s (OpenAI: %s/v1, Anthropic, Gemini and Ollama: %s)\n", url, url, url)
			})
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&scripts, "script", nil, "a script; may be given several times")
	f.StringVar(&o.Addr, "addr", sim.DefaultAddr, "loopback address to listen on; port 0 for any")
	f.IntVar(&o.Record, "record", 0, "keep so many request bodies for GET /requests")
	f.BoolVar(&noCache, "no-cache", false, "never report cached tokens")
	_ = cmd.MarkFlagFilename("script", "yaml", "yml")
	return cmd
}
