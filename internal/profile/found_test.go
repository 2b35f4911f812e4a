package profile

import (
	"errors"
	"os/exec"
	"testing"
)

func TestOriginsStandForThemselves(t *testing.T) {
	_, problems := load(map[string]string{"agents/a.yaml": minimal, "agentd.yaml": "cors: {origins: [\"*\", \"https://*.example.com\", \"http://a:3000\"]}\n"}, nil)
	want := `c/agentd.yaml:1:18: error: cors.origins[0]: is a pattern, which matches no origin (write each origin out: scheme://host[:port], such as http://127.0.0.1:3000)
c/agentd.yaml:1:23: error: cors.origins[1]: is a pattern, which matches no origin (write each origin out: scheme://host[:port], such as http://127.0.0.1:3000)`
	if got := lines(problems); got != want+"\n" {
		t.Errorf("got\n%s", got)
	}
}

func TestProgramsThatAreNotThere(t *testing.T) {
	files := map[string]string{"agents/a.yaml": minimal, "mcp/servers.yaml": `servers:
  there: {transport: stdio, command: there}
  here: {transport: stdio, command: dot}
  gone: {transport: stdio, command: gone}
  secret: {transport: stdio, command: "${S}"}
  path: {transport: stdio, command: ./bin/gone}
  web: {transport: http, url: "http://x/"}
`}
	opts := &Options{Env: env("S", "hush"), LookPath: func(name string) (string, error) {
		switch name {
		case "there":
			return "/bin/there", nil
		case "dot":
			return "dot", exec.ErrDot
		}
		return "", errors.New("no")
	}}
	_, problems := load(files, opts)
	const hint = "(install it, or write its path; until then the server's tools are missing)"
	want := "c/mcp/servers.yaml:4:28: notice: servers.gone.command: there is no such program on the PATH " + hint +
		"\nc/mcp/servers.yaml:5:30: notice: servers.secret.command: there is no such program on the PATH " + hint +
		"\nc/mcp/servers.yaml:6:28: notice: servers.path.command: there is no such program " + hint
	if got := lines(problems); got != want+"\n" {
		t.Errorf("got\n%s", got)
	}
	opts.LookPath = nil
	if _, problems := load(files, opts); len(problems) > 0 {
		t.Errorf("nobody asked for programs: %s", lines(problems))
	}
}
