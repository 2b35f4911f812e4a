package model

import (
	"math/rand/v2"
	"testing"

	"agentd/message"
)

// No call of at most so many tokens costs more than MaxCost says, whatever of them
// was cached, in every price class; and the bound rises with the tokens.
func TestMaxCost(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	infos := append(NewCatalogue().Models("anthropic"), NewCatalogue().Models("openai")...)
	infos = append(infos, NewCatalogue().Models("gemini")...)
	for range 300 {
		price := func() Price {
			return Price{Input: message.Money(r.Int64N(1e11)), Output: message.Money(r.Int64N(1e11)), CacheRead: message.Money(r.Int64N(1e10)), CacheWrite: message.Money(r.Int64N(2e11))}
		}
		infos = append(infos, Info{Source: "test", Price: price(), Long: []LongPrice{{Above: r.Int64N(1000), Price: price()}, {Above: 1000 + r.Int64N(1000), Price: price()}}})
	}
	for i := range infos {
		info := &infos[i]
		for range 50 {
			prompt, output := r.Int64N(300_000)+1, r.Int64N(20_000)+1
			if r.IntN(2) == 0 {
				prompt, output = r.Int64N(2500)+1, r.Int64N(20)+1
			}
			u := &message.Usage{CacheRead: r.Int64N(prompt), Output: r.Int64N(output + 1)}
			u.CacheWrite = r.Int64N(prompt - u.CacheRead)
			u.Input = r.Int64N(prompt - u.CacheRead - u.CacheWrite + 1)
			most := MaxCost(info, prompt, output)
			if got := Cost(info, u).Total; got > most {
				t.Fatalf("%+v costs %s, at most %s by %+v", u, got, most, info)
			}
			if more := MaxCost(info, prompt+1, output+1); more < most {
				t.Fatalf("a longer call costs %s, a shorter one %s", more, most)
			}
		}
	}
	if got := MaxCost(&Info{Price: Price{Input: message.Dollar}}, 1<<62, 1<<62); got <= 0 {
		t.Errorf("an endless call costs %s", got)
	}
	if got := MaxCost(&Info{}, 5, 5); got != 0 {
		t.Errorf("a free one costs %s", got)
	}
}
