package longsession

import "testing"

// Compaction of a 200,000-token session keeps every file path and decision that is
// planted, whoever writes the summaries, through many successive compactions.
func TestCompactionOfALongSessionKeepsWhatWasPlanted(t *testing.T) {
	for name, o := range map[string]Options{
		"the model itself":                        {Tokens: 200_000, Window: 64_000},
		"a large window":                          {Tokens: 400_000, Window: 128_000},
		"a summariser with a small window":        {Tokens: 200_000, Window: 64_000, Summariser: 13_000},
		"a summariser with a very small window":   {Tokens: 200_000, Window: 64_000, Summariser: 12_000},
		"a small window, and a larger summariser": {Tokens: 200_000, Window: 40_000, Summariser: 200_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := Play(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", *r)
			if r.Tokens < 200_000 || r.Compactions < 3 || r.InTurns == 0 || r.Planted < 100 || r.Refused > 0 {
				t.Errorf("the session is not what it was to be: %+v", *r)
			}
			if o.Summariser > 0 && o.Summariser < o.Window && r.Summaries <= 2*r.Compactions {
				t.Errorf("%d requests for %d compactions: what does not fit one has to be asked for in several", r.Summaries, r.Compactions)
			}
			for _, f := range r.Lost {
				t.Errorf("lost: %s (%s)", f.Text, f.Where)
			}
		})
	}
}
