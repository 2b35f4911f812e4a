package model

import (
	"slices"
	"strings"

	"agentd/message"
)

// Tier is a way of being served that costs another price than the usual one: PerMille
// thousandths of every price of the model.
type Tier struct {
	// Name is the provider's word, as in [message.Usage.Tier]: flex, priority, batch,
	// fast, or the place of inference, such as us. Empty: every word that no other
	// tier of the model has.
	Name     string
	PerMille int64
}

// usualTiers are the providers' words for a call at the usual price.
var usualTiers = []string{"", "auto", "default", "standard", "standard_only", "unspecified", "service_tier_unspecified", "global", "not_available"}

// TierOf joins what a provider says of how it served a call into one value of
// [message.Usage.Tier]: words for what costs the usual price are left out.
func TierOf(words ...string) string {
	var out []string
	for _, w := range words {
		if w = strings.ToLower(w); !slices.Contains(usualTiers, w) {
			out = append(out, w)
		}
	}
	return strings.Join(out, "+")
}

// tiered is a price in a tier. known is false if nobody knows what a part of it costs,
// which then counts at the usual price.
func (i *Info) tiered(p Price, tier string) (_ Price, known bool) {
	if tier == "" {
		return p, true
	}
	known = true
	for word := range strings.SplitSeq(tier, "+") {
		at := slices.IndexFunc(i.Tiers, func(t Tier) bool { return t.Name == word })
		if at < 0 {
			at = slices.IndexFunc(i.Tiers, func(t Tier) bool { return t.Name == "" })
		}
		if at < 0 {
			known = false
			continue
		}
		for _, m := range []*message.Money{&p.Input, &p.Output, &p.CacheRead, &p.CacheWrite, &p.CacheWrite1h} {
			const thousand = 1000
			*m = perMillion(int64(*m), message.Money(i.Tiers[at].PerMille*thousand))
		}
	}
	return p, known
}

// The tiers of the catalogue. Where a model has none of a name, a reply that says it was
// served so is priced as usual and marked ([message.Cost.Estimated]).
//
// Where their factors are from: developers.openai.com/api/docs/pricing and
// openai.com/api-priority-processing, platform.claude.com/docs/en/build-with-claude/fast-mode
// and /data-residency, ai.google.dev/gemini-api/docs/optimization, all read 2026-11-22; for
// GPT-5.6 github.com/BerriAI/litellm pull request 35270. Priority costs between 1.75 and 2
// times as much at Google, and what was agreed on at Anthropic.

// flexed is half the price for what is served when there is room: flex and batch.
func (i Info) flexed() Info { return i.tier("flex", 500).tier("batch", 500) }

func (i Info) tier(name string, perMille int64) Info {
	i.Tiers = append(slices.Clip(i.Tiers), Tier{name, perMille})
	return i
}

// residency: inference that stays in the United States costs a tenth more, from Claude 4.6
// on; older models know no other place.
func (i Info) residency() Info { return i.tier("us", 1100) }

// fast: twice the price for what comes faster.
func (i Info) fast() Info { return i.tier("fast", 2000) }

// priority is what going ahead of others costs, in thousandths of the price.
func (i Info) priority(perMille int64) Info { return i.tier("priority", perMille) }
