package schedule

import "testing"

func TestLists(t *testing.T) {
	for expr, want := range map[string]string{
		"0 3 * * *":               "0 3 * * *",
		"*/20 22-2 ? * fri-mon":   "0,20,40 0,1,2,22,23 * * 0,1,5,6",
		"5 0-23/8 1,15 nov-feb 7": "5 0,8,16 1,15 1,2,11,12 0",
		"0 0 * * 1-7":             "0 0 * * 0,1,2,3,4,5,6",
		"* * * * *":               "* * * * *",
	} {
		x, err := Parse(expr, "Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Lists(); got != want {
			t.Errorf("%s is %s, want %s", expr, got, want)
		}
	}
}
