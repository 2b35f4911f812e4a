package model

import (
	"testing"

	"agentd/message"
)

func TestTierOf(t *testing.T) {
	for _, tt := range []struct {
		words []string
		want  string
	}{
		{nil, ""}, {[]string{"default"}, ""}, {[]string{"standard", "", "global"}, ""}, {[]string{"not_available"}, ""}, {[]string{"STANDARD"}, ""},
		{[]string{"flex"}, "flex"}, {[]string{"PRIORITY"}, "priority"}, {[]string{"standard", "fast", "us"}, "fast+us"},
	} {
		if got := TierOf(tt.words...); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.words, got, tt.want)
		}
	}
}

func TestCostOfTiers(t *testing.T) {
	c := NewCatalogue(Info{Provider: "mine", ID: "m", Price: Price{Input: 3 * message.Dollar}, Tiers: []Tier{{PerMille: 1000}}})
	const million = 1_000_000
	for _, tt := range []struct {
		provider, id, tier string
		input              message.Money // of a million tokens
		estimated          bool
	}{
		{"openai", "gpt-5", "", message.Dollar * 5 / 4, false},
		{"openai", "gpt-5", "flex", message.Dollar * 5 / 8, false},
		{"openai", "gpt-5", "priority", message.Dollar * 5 / 2, false},
		{"azure", "gpt-5", "priority", message.Dollar * 5 / 2, false},
		{"openai", "gpt-5-mini", "priority", message.Dollar * 45 / 100, false},
		{"openai", "gpt-5.5", "priority", 25 * message.Dollar, false}, // a long prompt
		{"openai", "gpt-5", "scale", message.Dollar * 5 / 4, true},
		{"anthropic", "claude-opus-5-5", "fast", 8 * message.Dollar, false},
		{"anthropic", "claude-opus-5-5", "fast+us", message.Dollar * 88 / 10, false},
		{"anthropic", "claude-opus-5-5", "priority+us", message.Dollar * 44 / 10, true},
		{"anthropic", "claude-haiku-4-5", "batch", message.Dollar / 2, false},
		{"gemini", "gemini-3.5-flash", "flex", message.Dollar * 3 / 4, false},
		{"gemini", "gemini-3.5-flash", "priority", message.Dollar * 3 / 2, true},
		{"mine", "m", "priority", 3 * message.Dollar, false}, // whoever writes a price knows what for
		{"nobody", "knows", "priority", 0, false},
	} {
		info := c.Lookup(tt.provider, tt.id)
		got := Cost(&info, &message.Usage{Input: million, Tier: tt.tier})
		if got.Input != tt.input || got.Total != tt.input || got.Estimated != tt.estimated {
			t.Errorf("%s %q: %+v, want %s, estimated %t", tt.id, tt.tier, got, tt.input, tt.estimated)
		}
	}
}
