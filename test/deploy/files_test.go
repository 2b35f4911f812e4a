package deploy

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

const deployDir = "../../deploy"

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// project reads compose.yaml beside secrets that its script made.
func project(t *testing.T) *types.Project {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(deployDir)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(dir, "compose/secrets.sh")).CombinedOutput(); err != nil {
		t.Fatalf("secrets.sh: %v\n%s", err, out)
	}
	before := read(t, filepath.Join(dir, "compose/secrets/agentd_pgpass"))
	if out, err := exec.Command(filepath.Join(dir, "compose/secrets.sh")).CombinedOutput(); err != nil || read(t, filepath.Join(dir, "compose/secrets/agentd_pgpass")) != before {
		t.Fatalf("the second time secrets.sh is another: %v\n%s", err, out)
	}
	o, err := cli.NewProjectOptions([]string{filepath.Join(dir, "compose.yaml")}, cli.WithNormalization(true), cli.WithConsistency(true), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// compose.yaml is read as docker compose reads it; what it names is there, and its commands are agentd's.
func TestCompose(t *testing.T) {
	p := project(t)
	if got := p.ServiceNames(); !slices.Equal(got, []string{"api", "postgres", "temporal", "worker"}) {
		t.Fatalf("services: %v", got)
	}
	for _, s := range p.Secrets {
		if info, err := os.Stat(s.File); err != nil || info.Size() == 0 || info.Mode().Perm()&0o004 == 0 {
			t.Errorf("the users of the containers can not read secret %s: %v", s.File, err)
		}
	}
	for name, s := range p.Services {
		if s.Image == "" || !strings.Contains(s.Image, ":") || strings.HasSuffix(s.Image, ":latest") {
			t.Errorf("%s: the image %q has no fixed version", name, s.Image)
		}
		if s.HealthCheck == nil || s.Restart != "unless-stopped" {
			t.Errorf("%s has no health check or is not started again", name)
		}
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				if _, err := os.Stat(v.Source); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		if name != "api" && name != "worker" {
			continue
		}
		checkArgs(t, s.Command)
		if test := s.HealthCheck.Test; test[0] != "CMD" || test[1] != "/agentd" {
			t.Errorf("%s: %v", name, test)
		} else {
			checkArgs(t, test[2:])
		}
		// http.shutdown_delay, shutdown_grace and twice cluster.drain_timeout of compose/configs, and some.
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || time.Duration(*s.StopGracePeriod) < 5*time.Second+10*time.Second+60*time.Second+10*time.Second {
			t.Errorf("%s: %+v", name, s)
		}
		if strings.Contains(fmt.Sprint(s.Environment), read(t, p.Secrets["agentd_password"].File)) {
			t.Errorf("%s has its password in the environment", name)
		}
	}
	cmd := exec.Command(binary(t), "config", "check", deployDir+"/compose/configs")
	cmd.Env = []string{"OPENAI_API_KEY=x", "ANTHROPIC_API_KEY=x"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The Dockerfile is read and linted by BuildKit's own parser.
func TestDockerfile(t *testing.T) {
	text := read(t, deployDir+"/Dockerfile")
	result, err := parser.Parse(bytes.NewReader([]byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	l := linter.New(&linter.Config{Warn: func(rule, description, url, msg string, _ []parser.Range) {
		t.Errorf("%s: %s (%s)", rule, msg, description)
	}})
	stages, _, err := instructions.Parse(result.AST, l)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range result.Warnings {
		t.Error(w.Short)
	}
	last := stages[len(stages)-1]
	if last.BaseName != "scratch" {
		t.Errorf("the image is based on %s", last.BaseName)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../../go.mod"))[1]
	if !strings.HasPrefix(stages[0].BaseName, "golang:"+version+".") {
		t.Errorf("go.mod asks for Go %s, the image is built by %s", version, stages[0].BaseName)
	}
	var copied []string
	seen := map[string]bool{}
	for _, c := range last.Commands {
		seen[c.Name()] = true
		switch c := c.(type) {
		case *instructions.CopyCommand:
			copied = append(copied, c.DestPath)
		case *instructions.UserCommand:
			if c.User != "65532:65532" {
				t.Errorf("USER %s", c.User)
			}
		case *instructions.HealthCheckCommand:
			if c.Health.Test[0] != "CMD" { // there is no shell
				t.Errorf("HEALTHCHECK %v", c.Health.Test)
			}
			checkArgs(t, c.Health.Test[2:])
		case *instructions.EntrypointCommand:
			if c.PrependShell {
				t.Error("the entry point needs a shell")
			}
		case *instructions.CmdCommand:
			if c.PrependShell {
				t.Error("the command needs a shell")
			}
			checkArgs(t, c.CmdLine)
		case *instructions.RunCommand:
			t.Errorf("there is nothing to run: %v", c.CmdLine)
		}
	}
	// test/image runs the binary in a folder with these and nothing else.
	if want := []string{"/etc/ssl/certs/ca-certificates.crt", "/agentd", "/var/lib/agentd", "/srv/agentd"}; !slices.Equal(copied, want) {
		t.Errorf("the image has %v; bring test/image up to date", copied)
	}
	for _, name := range []string{"USER", "HEALTHCHECK", "ENTRYPOINT", "CMD", "COPY"} {
		if !seen[name] && !seen[strings.ToLower(name)] {
			t.Errorf("there is no %s", name)
		}
	}
	if !strings.Contains(text, "CGO_ENABLED=0") {
		t.Error("the binary is not static")
	}
}

// systemd reads the units, finds nothing to complain of, and thinks them well shut in.
func TestUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatalf("%v: make tools installs it", err)
	}
	dir := t.TempDir()
	for _, name := range []string{"agentd.service", "agentd-worker@.service"} {
		text := read(t, filepath.Join(deployDir, "systemd", name))
		for _, line := range strings.Split(text, "\n") {
			if _, command, ok := strings.Cut(line, "=/usr/local/bin/agentd "); ok {
				checkArgs(t, strings.Fields(strings.ReplaceAll(command, "%i", "7071")))
			}
		}
		for _, want := range []string{"KillMode=mixed", "TimeoutStopSec=90s", "Restart=always", "DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict"} {
			if !strings.Contains(text, "\n"+want+"\n") {
				t.Errorf("%s has no %s", name, want)
			}
		}
		// The units are looked at where their program is.
		text = strings.ReplaceAll(text, "/usr/local/bin/agentd", binary(t))
		path := filepath.Join(dir, strings.Replace(name, "@.", "@7071.", 1))
		for _, p := range []string{path, filepath.Join(dir, name)} {
			if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if out, err := exec.CommandContext(ctx, analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || strings.Contains(string(out), dir) {
			t.Errorf("systemd-analyze verify %s: %v\n%s", name, err, out)
		}
		// 2.0 of 10, where 10 is no protection at all.
		if out, err := exec.CommandContext(ctx, analyze, "security", "--offline=yes", "--threshold=20", path).CombinedOutput(); err != nil {
			t.Errorf("systemd-analyze security %s: %v\n%s", name, err, out)
		}
	}
}
