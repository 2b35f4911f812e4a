package server_test

import "testing"

func TestRulesOfASession(t *testing.T) {
	a := start(t, nil)
	id, _ := a.do("POST", "/sessions", `{}`).json(t)["session_id"].(string)
	rules, _ := a.do("GET", "/sessions/"+id+"/rules", "").json(t)["rules"].([]any)
	if len(rules) != 1 || rules[0].(map[string]any)["rule_id"] != "rule_1" {
		t.Errorf("rules: %v", rules)
	}
	for path, status := range map[string]int{"/rules": 204, "/rules/rule_1": 204, "/rules/rule_2": 404} {
		if r := a.do("DELETE", "/sessions/"+id+path, ""); r.status != status {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if r := a.do("GET", "/sessions/ses_no/rules", ""); r.status != 404 {
		t.Errorf("%d %s", r.status, r.body)
	}
}
