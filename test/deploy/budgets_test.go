package deploy

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"

	"helm.sh/helm/v3/pkg/chartutil"
)

// What somebody says of a disruption budget is not overruled by a default, and the defaults let nodes be drained
// whatever the number of pods is.
func TestChartDisruptionBudgets(t *testing.T) {
	for _, c := range []struct {
		api, worker                map[string]any
		apiMin, apiMax, wMin, wMax string
	}{
		{nil, nil, "", "1", "", "1"},
		{map[string]any{"maxUnavailable": "50%"}, map[string]any{"minAvailable": 2}, "", "50%", "2", ""},
		{map[string]any{"minAvailable": 0}, map[string]any{"maxUnavailable": 0}, "0", "", "", "0"},
	} {
		v := chartutil.Values{"api": map[string]any{"podDisruptionBudget": c.api}, "worker": map[string]any{"podDisruptionBudget": c.worker}}
		if c.api == nil {
			v = chartutil.Values{}
		}
		files, err := render(v)
		if err != nil {
			t.Fatal(err)
		}
		r := decode(t, files)
		for role, want := range map[string][2]string{"api": {c.apiMin, c.apiMax}, "worker": {c.wMin, c.wMax}} {
			var got [2]string
			spec := of[*policyv1.PodDisruptionBudget](t, r, "PodDisruptionBudget/agents-agentd-"+role).Spec
			if spec.MinAvailable != nil {
				got[0] = spec.MinAvailable.String()
			}
			if spec.MaxUnavailable != nil {
				got[1] = spec.MaxUnavailable.String()
			}
			if got != want {
				t.Errorf("%s with %v and %v: at least %q, at most %q gone; want %q", role, c.api, c.worker, got[0], got[1], want)
			}
		}
	}
	both := map[string]any{"minAvailable": 1, "maxUnavailable": 1}
	if _, err := render(chartutil.Values{"api": map[string]any{"podDisruptionBudget": both}}); err == nil {
		t.Error("both are taken, of which Kubernetes takes one")
	}
}
