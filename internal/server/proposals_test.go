package server_test

import "testing"

func TestProposals(t *testing.T) {
	a := start(t, nil)
	id, _ := a.do("POST", "/runs", `{"profile":"echo","input":"x","mode":"autonomous"}`).json(t)["run_id"].(string)
	for _, c := range []struct{ method, path, body, status string }{
		{"GET", "/proposals", "", "proposed"}, {"POST", "/proposals/apply", `{}`, "applied"}, {"POST", "/proposals/apply", `{"proposal_id":"p1","uncertain":"retry"}`, "applied"},
		{"POST", "/proposals/discard", `{"proposal_id":"p1"}`, "discarded"},
	} {
		ps, _ := a.do(c.method, "/runs/"+id+c.path, c.body).json(t)["proposals"].([]any)
		if len(ps) != 1 || ps[0].(map[string]any)["status"] != c.status {
			t.Errorf("%s: %v", c.path, ps)
		}
	}
	for body, status := range map[string]int{`{"proposal_id":"p9"}`: 404, `{"uncertain":"perhaps"}`: 400, `{"x":1}`: 400} {
		if r := a.do("POST", "/runs/"+id+"/proposals/apply", body); r.status != status {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	if r := a.do("GET", "/runs/run_no/proposals", ""); r.status != 404 {
		t.Errorf("%d %s", r.status, r.body)
	}
}
