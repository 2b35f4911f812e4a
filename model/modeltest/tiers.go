package modeltest

import (
	"testing"

	"agentd/message"
	"agentd/model"
)

// Tiers says how a reply tells in which tier of service it was served.
type Tiers struct {
	// Served puts a word for it into a fixture.
	Served func(fixture []byte, word string) []byte
	// Usual is the word for the usual tier, Half one at half the price.
	Usual, Half string
}

// tiers: what a reply costs goes by how the provider says that it was served; what nobody
// knows the price of is priced as usual, and says so.
func tiers(t *testing.T, h Harness) {
	info := model.NewCatalogue().Lookup(h.Provider, h.Model)
	plain := h.Usage["text"]
	usual := model.Cost(&info, &plain)
	for _, tt := range []struct {
		word, tier string
		half       bool
		estimated  bool
	}{{h.Tiers.Usual, "", false, false}, {h.Tiers.Half, h.Tiers.Half, true, false}, {"sideways", "sideways", false, true}} {
		f := serve(t, stream(h.Tiers.Served(h.fixture(t, "text"), tt.word)))
		m, err := h.adapter(t, f).Generate(t.Context(), h.ask(), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := usual
		want.Estimated = tt.estimated
		if tt.half {
			want.Input, want.Output, want.CacheRead, want.CacheWrite = (usual.Input+1)/2, (usual.Output+1)/2, (usual.CacheRead+1)/2, (usual.CacheWrite+1)/2
			want.Total = want.Input + want.Output + want.CacheRead + want.CacheWrite
		}
		if u := m.Usage; u.Tier != tt.tier || u.Cost != want {
			t.Errorf("%s: tier %q, cost %+v, want %+v", tt.word, u.Tier, u.Cost, want)
		}
	}
}

// stops: the API is asked for as many stop texts as it takes, and the reply ends at the
// others all the same.
func stops(t *testing.T, h Harness) {
	texts := []string{"one", "two", "three", "four", "five", "six", "seven", " look"}
	f := serve(t, stream(h.fixture(t, "tool")))
	p := h.adapter(t, f)
	for n := range len(texts) + 1 {
		var events recorder
		m, err := p.Generate(t.Context(), &model.Request{Model: h.Model, Messages: h.ask().Messages, Stop: texts[len(texts)-n:]}, events.add)
		if err != nil {
			t.Fatal(err)
		}
		events.check(t, m)
		asked := h.Stops(t, f.last(t))
		if len(asked) != min(n, h.MaxStops) {
			t.Errorf("of %d stop texts it is asked for %q", n, asked)
		}
		if cut := n > h.MaxStops; cut != (m.Text() == "I will") || cut != (len(m.ToolCalls()) == 0) || cut != (m.StopReason == message.StopEnd) {
			t.Errorf("%d stop texts: %s", n, dump(m))
		}
	}
}
