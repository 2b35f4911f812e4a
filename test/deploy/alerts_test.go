package deploy

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// metrics are those of a server whose model and MCP server are away, with the labels that they have: what is wrong
// is what alerts are about.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"agents/gone.yaml": "profile_name: gone\nprimary_model: {provider: openai, model: m, base_url: 'http://127.0.0.1:9/v1', price: {input: 1, output: 1}}\nretry: {enabled: false}\n" +
			"circuit_breakers: {provider: {failures: 1}}\ntools: {mcp_servers: [dead]}\n",
		"mcp/servers.yaml": "servers:\n  dead: {transport: http, url: 'http://127.0.0.1:9/mcp', timeouts: {connect: 100ms}}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	server := exec.Command(binary(t), "serve", "--configs", dir, "--data", ":memory:", "--addr", addr)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, binary(t), "health", "--server", "http://"+addr, "--wait", "30s").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// The answer is the run's events, to its end.
	resp, err := http.Post("http://"+addr+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"gone","messages":[{"role":"user","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp, err = http.Get("http://" + addr + "/metrics"); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for name, f := range families {
		labels := []string{"instance", "job", "le"}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				labels = append(labels, l.GetName())
			}
		}
		for _, suffix := range []string{"", "_bucket", "_count", "_sum"} {
			out[name+suffix] = labels
		}
	}
	return out
}

// Prometheus reads the rules; each metric and label is one that a real server has, or at least tells of; each alert is
// in docs/operations.md.
func TestAlerts(t *testing.T) {
	groups, errs := rulefmt.ParseFile(deployDir+"/prometheus/alerts.yaml", false, model.UTF8Validation)
	for _, err := range errs {
		t.Error(err)
	}
	if len(errs) > 0 {
		return
	}
	observability, operations, real := read(t, "../../docs/observability.md"), read(t, "../../docs/operations.md"), metrics(t)
	seen := 0
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if !strings.Contains(operations, "`"+r.Alert+"`") {
				t.Errorf("docs/operations.md does not say what to do about %s", r.Alert)
			}
			expr, err := parser.ParseExpr(r.Expr)
			if err != nil {
				t.Errorf("%s: %v", r.Alert, err)
				continue
			}
			parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
				v, ok := n.(*parser.VectorSelector)
				if !ok || v.Name == "up" {
					return nil
				}
				labels, there := real[v.Name]
				if !there {
					if !strings.Contains(observability, "`"+v.Name+"`") {
						t.Errorf("%s: there is no metric %s", r.Alert, v.Name)
					}
					return nil
				}
				seen++
				var used []string
				for _, m := range v.LabelMatchers {
					if m.Name != "__name__" {
						used = append(used, m.Name)
					}
				}
				for _, above := range path {
					if a, ok := above.(*parser.AggregateExpr); ok {
						used = append(used, a.Grouping...)
					}
				}
				for _, l := range used {
					if !slices.Contains(labels, l) {
						t.Errorf("%s: %s has no label %s, but %v", r.Alert, v.Name, l, labels)
					}
				}
				return nil
			})
		}
	}
	if seen < 9 {
		t.Errorf("only %d metrics of the rules were there", seen)
	}
}
