package model

import (
	"math"
	"slices"
	"testing"

	"agentd/message"
)

func TestLookup(t *testing.T) {
	c := NewCatalogue(Info{Provider: "local", ID: "qwen", ContextWindow: 32_768}, Info{Provider: "openai", ID: "gpt-4o", Price: Price{Input: 1}})
	tests := []struct {
		provider, id string
		priced       bool
		window       int
		input        message.Money
	}{
		{"anthropic", "claude-haiku-4-5", true, 200_000, message.Dollar},
		{"anthropic", "claude-haiku-4-5-20251001", true, 200_000, message.Dollar},
		{"anthropic", "claude-3-7-sonnet-latest", true, 200_000, 3 * message.Dollar},
		{"openai", "gpt-5-2025-08-07", true, 400_000, message.Dollar * 5 / 4},
		{"openai", "gpt-4o-2024-05-13", true, 128_000, 5 * message.Dollar}, // a dated row of its own
		{"openai", "gpt-4o-2024-08-06", true, 128_000, 1},                  // the configured gpt-4o
		{"openai", "gpt-99", false, DefaultContextWindow, 0},
		{"azure", "gpt-4o", true, 128_000, message.Dollar * 5 / 2}, // what OpenAI takes; the configured price is OpenAI's
		{"azure", "gpt-5-2025-08-07", true, 400_000, message.Dollar * 5 / 4},
		{"azure", "claude-haiku-4-5", false, DefaultContextWindow, 0},
		{"local", "qwen", true, 32_768, 0}, // free, and known to be
		{"", "", false, DefaultContextWindow, 0},
		{"openai", "-2025-08-07", false, DefaultContextWindow, 0},
	}
	for _, tt := range tests {
		i := c.Lookup(tt.provider, tt.id)
		if i.Priced() != tt.priced || i.ContextWindow != tt.window || i.Price.Input != tt.input || i.ID != tt.id || i.Provider != tt.provider {
			t.Errorf("%s/%s: %+v", tt.provider, tt.id, i)
		}
		if i.MaxOutput <= 0 {
			t.Errorf("%s/%s: MaxOutput %d", tt.provider, tt.id, i.MaxOutput)
		}
	}
}

// all are the built-in models of all providers, as they are looked up.
func all(t *testing.T) (models []Info) {
	c := NewCatalogue()
	for _, provider := range []string{"anthropic", "openai", "azure", "gemini"} {
		some := c.Models(provider)
		if len(some) < 10 {
			t.Fatalf("%s has %d models", provider, len(some))
		}
		models = append(models, some...)
	}
	if len(models) != len(c.models) {
		t.Fatalf("%d models of %d are of these providers", len(models), len(c.models))
	}
	return models
}

// A model that is not there is said to be unknown: it is not free, and its window is a guess
// that is safe.
func TestUnknown(t *testing.T) {
	i := NewCatalogue().Lookup("openai", "gpt-99")
	if i.Priced() || i.Source != "" || i.ContextWindow != DefaultContextWindow || i.MaxOutput != DefaultMaxOutput || i.Reasoning || len(i.Efforts) > 0 {
		t.Errorf("%+v", i)
	}
	u := message.Usage{Input: 1_000_000, CacheRead: 1}
	if c := Cost(&i, &u); c.Total != 0 || Saved(&i, &u) != 0 {
		t.Errorf("a price is made up: %+v", c)
	}
	// What a configuration leaves out is filled in, and its author vouches for the rest.
	i = NewCatalogue(Info{Provider: "x", ID: "y"}).Lookup("x", "y")
	if !i.Priced() || i.Source != "configuration" || i.ContextWindow != DefaultContextWindow || i.MaxOutput != DefaultMaxOutput {
		t.Errorf("%+v", i)
	}
}

// Each level is a word of the model's own, and a higher level never asks for less.
func TestLevels(t *testing.T) {
	order := []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}
	for _, i := range all(t) {
		for n, word := range i.Efforts {
			if !slices.Contains(order, word) || n > 0 && slices.Index(order, word) <= slices.Index(order, i.Efforts[n-1]) {
				t.Errorf("%s: efforts %q", i.ID, i.Efforts)
			}
		}
		if i.Reasoning != (len(i.Efforts) > 0 || i.Thinking == ThinkingByBudget) {
			t.Errorf("%s: reasons: %v, by %q and %q", i.ID, i.Reasoning, i.Thinking, i.Efforts)
		}
		last := -1
		for _, level := range []ThinkingLevel{ThinkingOff, ThinkingMinimal, ThinkingLow, ThinkingMedium, ThinkingHigh, ThinkingXHigh, ThinkingMax} {
			word := i.Effort(level)
			if (word == "") != (len(i.Efforts) == 0) || word != "" && !slices.Contains(i.Efforts, word) {
				t.Errorf("%s has no %q, which %s is to be", i.ID, word, level)
			}
			if at := slices.Index(order, word); at < last {
				t.Errorf("%s: %s asks for %s, less than the level below", i.ID, level, word)
			} else {
				last = at
			}
		}
		if n := len(i.Efforts); n > 0 && i.Effort(ThinkingMax) != i.Efforts[n-1] {
			t.Errorf("%s: the most is %s, and max is %s", i.ID, i.Efforts[n-1], i.Effort(ThinkingMax))
		}
		if i.Effort(ThinkingAdaptive) != "" {
			t.Errorf("%s: adaptive names an effort", i.ID)
		}
	}
}

// Every built-in row says where it is from and is sound enough to bill with.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, i := range all(t) {
		if seen[i.Provider+"/"+i.ID] {
			t.Errorf("%s is there twice", i.ID)
		}
		seen[i.Provider+"/"+i.ID] = true
		if i.Source == "" || i.ContextWindow < 100_000 || i.MaxOutput < DefaultMaxOutput || i.MaxOutput > i.ContextWindow {
			t.Errorf("%s: %+v", i.ID, i)
		}
		p := i.Price
		if p.Input <= 0 || p.Output <= p.Input || p.CacheRead <= 0 || p.CacheRead > p.Input || p.CacheWrite < p.Input || p.CacheWrite1h < p.CacheWrite {
			t.Errorf("%s: implausible price %+v", i.ID, p)
		}
		for _, l := range i.Long {
			if l.Above <= 0 || l.Price.Input <= p.Input || l.Price.Output <= p.Output {
				t.Errorf("%s: implausible long price %+v", i.ID, l)
			}
		}
	}
	models := NewCatalogue().Models("openai")
	if len(models) < 20 || models[0].ID >= models[1].ID {
		t.Errorf("Models: %d, not sorted or too few", len(models))
	}
}

func TestCost(t *testing.T) {
	c := NewCatalogue()
	sonnet, haiku, sol := c.Lookup("anthropic", "claude-sonnet-4-5"), c.Lookup("anthropic", "claude-haiku-5-5"), c.Lookup("openai", "gpt-6-sol")
	unknown := c.Lookup("x", "y")
	tests := []struct {
		name    string
		info    Info
		usage   message.Usage
		write1h int64
		want    string // input output read write total
	}{
		{"every kind", sonnet, message.Usage{Input: 1_000_000, Output: 1_000_000, CacheRead: 1_000_000, CacheWrite: 1_000_000}, 0, "3 15 0.3 3.75 22.05"},
		{"one token", sonnet, message.Usage{Input: 1, Output: 1, CacheRead: 1, CacheWrite: 1}, 0, "0.000003 0.000015 0.0000003 0.00000375 0.00002205"},
		{"an hour", sonnet, message.Usage{CacheWrite: 1_000_000}, 400_000, "0 0 0 4.65 4.65"},
		{"more for an hour than written", sonnet, message.Usage{CacheWrite: 10}, 400_000, "0 0 0 0.00006 0.00006"},
		{"rounded up", Info{Price: Price{Input: 1, Output: 999_999}}, message.Usage{Input: 1, Output: 1}, 0, "0.000000001 0.000000001 0 0 0.000000002"},
		{"below the long prompt", haiku, message.Usage{Input: 100_000, Output: 10}, 0, "0.01 0.000005 0 0 0.010005"},
		{"a long prompt", haiku, message.Usage{Input: 1, CacheRead: 100_000, Output: 10}, 0, "0.0000005 0.000025 0.005 0 0.0050255"},
		{"a long prompt of OpenAI", sol, message.Usage{Input: 300_000, Output: 1_000_000}, 0, "1.2 15 0 0 16.2"},
		{"unknown", unknown, message.Usage{Input: 5, Output: 5}, 0, "0 0 0 0 0"},
		{"negative", sonnet, message.Usage{Input: -5, Output: -5, CacheWrite: -1}, -3, "0 0 0 0 0"},
		{"huge", Info{Price: Price{Input: 1 << 62, Output: 1 << 62}}, message.Usage{Input: math.MaxInt64, Output: 1 << 60}, 0,
			"9223372036.854775807 9223372036.854775807 0 0 9223372036.854775807"},
	}
	for _, tt := range tests {
		got := CostWith1h(&tt.info, &tt.usage, tt.write1h)
		s := got.Input.String() + " " + got.Output.String() + " " + got.CacheRead.String() + " " + got.CacheWrite.String() + " " + got.Total.String()
		if s != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, s, tt.want)
		}
	}
	if (Cost(&sonnet, nil) != message.Cost{}) {
		t.Error("no usage costs something")
	}
	if Cost(&sonnet, &message.Usage{Output: 2}).Output != 30_000 {
		t.Error("Cost is not CostWith1h of none")
	}
}

func TestEffort(t *testing.T) {
	c := NewCatalogue()
	for _, tt := range []struct {
		provider, id string
		level        ThinkingLevel
		want         string
	}{
		{"openai", "gpt-5", ThinkingOff, "minimal"},
		{"openai", "gpt-5.1", ThinkingOff, "none"},
		{"openai", "o3", ThinkingMinimal, "low"},
		{"openai", "gpt-5", ThinkingXHigh, "high"},
		{"openai", "gpt-5.2", ThinkingXHigh, "xhigh"},
		{"openai", "gpt-5.2", ThinkingMax, "xhigh"},
		{"openai", "gpt-6-sol", ThinkingXHigh, "xhigh"},
		{"openai", "gpt-6-sol", ThinkingMax, "max"},
		{"azure", "gpt-5.6", ThinkingMax, "max"},
		{"anthropic", "claude-opus-5", ThinkingMax, "max"},
		{"gemini", "gemini-4-hydrogen", ThinkingMax, "xhigh"},
		{"gemini", "gemini-4-argon", ThinkingMax, "high"},
		{"gemini", "gemini-2.5-pro", ThinkingMax, ""}, // a number of tokens
		{"openai", "gpt-5.2", ThinkingAdaptive, ""},
		{"openai", "gpt-5.2", "", ""},
		{"openai", "gpt-4o", ThinkingHigh, ""},
		{"anthropic", "claude-opus-4-6", ThinkingXHigh, "max"},
		{"anthropic", "claude-opus-5-5", ThinkingOff, "low"},
	} {
		i := c.Lookup(tt.provider, tt.id)
		if got := i.Effort(tt.level); got != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.id, tt.level, got, tt.want)
		}
	}
	one := Info{Efforts: []string{"high"}}
	if one.Effort(ThinkingOff) != "high" {
		t.Error("a model of one effort takes that one")
	}
}
