package server_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"agentd/internal/server"
)

func TestTracePages(t *testing.T) {
	a := start(t, nil)
	run, _ := a.do("POST", "/runs", `{"profile":"echo","input":"x"}`).json(t)["run_id"].(string)
	for query, want := range map[string]string{
		"":                 `"n":3`,
		"?limit=2":         `"more":true`,
		"?after=2&limit=5": `"more":false`,
		"?after=9":         `"trace":[]`,
	} {
		if r := a.do("GET", "/runs/"+run+"/trace"+query, ""); r.status != 200 || !strings.Contains(string(r.body), want) {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
	for path, want := range map[string]int{"/runs/none/trace": 404, "/runs/" + run + "/trace?limit=0": 400, "/runs/" + run + "/trace?after=-1": 400,
		"/runs/" + run + "/trace?limit=2001": 400, "/runs/" + run + "/trace?x=1": 400} {
		if r := a.do("GET", path, ""); r.status != want {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}

func TestMetrics(t *testing.T) {
	if r := start(t, nil).do("GET", "/metrics", ""); r.status != 404 {
		t.Errorf("%d %s", r.status, r.body)
	}
	a := start(t, &server.Options{Metrics: func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, "agentd_info 1\n")
		return err
	}})
	resp := a.send("GET", "/metrics", "")
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || string(body) != "agentd_info 1\n" || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%d %s %v", resp.StatusCode, body, err)
	}
}
