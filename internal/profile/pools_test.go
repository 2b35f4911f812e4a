package profile

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"agentd/fault"
)

func TestPools(t *testing.T) {
	fsys := fstest.MapFS{
		"agents/a.yaml": {Data: []byte(`
profile_name: a
primary_model: {provider: script, model: m, pool: big}
fallback_models: [{provider: script, model: n}]
tools: {mcp_servers: [s]}
`)},
		"mcp/servers.yaml": {Data: []byte(`
servers:
  s: {transport: http, url: "http://127.0.0.1:1/mcp", pool: gpu, tools: {small: {pool: cpu}}}
`)},
		"agentd.yaml": {Data: []byte("cluster: {pools: [run, model, model.big, tool.gpu], max_pool_calls: 3, pool_wait: 90s}\n")},
	}
	c, problems := LoadFS(fsys, "c", &Options{Env: env(), Providers: []string{"script"}})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	p := c.Profiles["a"]
	if Pool("model", p.PrimaryModel.Pool) != "model.big" || Pool("model", p.FallbackModels[0].Pool) != "" {
		t.Errorf("models: %+v", p)
	}
	if s := c.Servers["s"]; s.Pool != "gpu" || s.Tools["small"].Pool != "cpu" {
		t.Errorf("server: %q %q", s.Pool, s.Tools["small"].Pool)
	}
	k := c.Settings.Cluster
	if !slices.Equal(k.Pools, []string{"run", "model", "model.big", "tool.gpu"}) || k.MaxPoolCalls != 3 || k.PoolWait.Std().Seconds() != 90 {
		t.Errorf("cluster: %+v", k)
	}
}

func TestPoolsThatAreNone(t *testing.T) {
	fsys := fstest.MapFS{
		"agents/a.yaml":    {Data: []byte("profile_name: a\nprimary_model: {provider: script, model: m, pool: model.big}\n")},
		"mcp/servers.yaml": {Data: []byte("servers:\n  s: {transport: http, url: \"http://127.0.0.1:1/mcp\", pool: Big One, tools: {x: {pool: -}}}\n")},
		"agentd.yaml":      {Data: []byte("cluster: {pools: [run, run.x, gpu, tool., model.A]}\n")},
	}
	_, problems := LoadFS(fsys, "c", &Options{Env: env(), Providers: []string{"script"}})
	var got []string
	for _, p := range problems.Errors() {
		got = append(got, p.Key+": "+p.Message)
	}
	slices.Sort(got)
	want := []string{"cluster.pools[1]: is not a pool that a node can serve", "cluster.pools[2]: is not a pool that a node can serve",
		"cluster.pools[3]: is not a pool that a node can serve", "cluster.pools[4]: is not a pool that a node can serve",
		"primary_model.pool: is not the name of a pool", "servers.s.pool: is not the name of a pool", "servers.s.tools.x.pool: is not the name of a pool"}
	if !slices.Equal(got, want) {
		t.Errorf("problems:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestServedPools(t *testing.T) {
	for s, want := range map[string][]string{"": nil, "run": {"run"}, "model, tool.gpu": {"model", "tool.gpu"}} {
		if got, err := ServedPools(s); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{",", "gpu", "tool.", "run,", "Tool", "tool.x.y", "model.Ä"} {
		if got, err := ServedPools(s); fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.HintOf(err), "tool.NAME") {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
}
