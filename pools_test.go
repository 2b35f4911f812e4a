package agentd

import (
	"slices"
	"testing"
	"testing/fstest"

	"agentd/fault"
	"agentd/internal/profile"
	"agentd/internal/store/postgres/pgtest"
)

// Models have the pools of their profile, and what a node does is what it is told.
func TestPoolsOfTheConfiguration(t *testing.T) {
	conf, problems := profile.LoadFS(fstest.MapFS{"agents/a.yaml": {Data: []byte(`
profile_name: a
primary_model: {provider: script, model: m, pool: big}
fallback_models: [{provider: script, model: n}]
`)}}, "c", nil)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	a, err := newAgents(&Config{}, conf)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	models, err := a.models(conf.Profiles["a"])
	if err != nil || len(models) != 2 || models[0].Pool != "model.big" || models[1].Pool != "" {
		t.Errorf("%+v, %v", models, err)
	}
}

func TestWhatANodeDoes(t *testing.T) {
	if _, err := Open(t.Context(), Config{Pools: "tool"}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("alone: %v", err)
	}
	url := pgtest.Start(t, "fsync = off").NewURL()
	for _, want := range []struct {
		cfg    Config
		pools  []string
		drives bool
	}{
		{Config{}, nil, true},
		{Config{NoWorker: true}, []string{}, false},
		{Config{Pools: "run,tool"}, []string{"run", "tool"}, true},
		{Config{Pools: "tool.gpu"}, []string{"tool.gpu"}, false},
		{Config{NoWorker: true, Pools: "tool.gpu"}, []string{"tool.gpu"}, false},
		{Config{Dormant: true}, nil, false},
	} {
		want.cfg.Data = url
		rt, err := Open(t.Context(), want.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if pools, drives := rt.Pools(); !slices.Equal(pools, want.pools) || (pools == nil) != (want.pools == nil) || drives != want.drives {
			t.Errorf("%+v: %v, %v", want.cfg, pools, drives)
		}
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}
}
