package sim

import (
	"strconv"
	"strings"
	"time"
)

// cacheRules are what of a service's rules depends on the model.
type cacheRules struct {
	// marks: prefixes are cached where the request says (Anthropic). writes: what is
	// written is counted, and costs more (OpenAI since GPT-5.6).
	marks, writes bool
	// least is how many tokens a prefix must have.
	least int64
	// keep is how long a prefix stays after its last use, atMost how long in all (0: no
	// end).
	keep, atMost time.Duration
}

// rulesOf gives the rules for a model. A Gemini model behind OpenAI's wire is known by
// its name.
func rulesOf(model string, anthropic bool) cacheRules {
	switch {
	case anthropic:
		return cacheRules{marks: true, least: claudeLeast(model), keep: 5 * time.Minute}
	case strings.HasPrefix(model, "gemini"):
		return geminiRules(model)
	}
	switch v := gptVersion(model); {
	case v >= 5.6:
		return cacheRules{writes: true, least: cacheMinimum, keep: 30 * time.Minute}
	case v >= 5.5:
		return cacheRules{least: cacheMinimum, keep: 24 * time.Hour}
	}
	// In memory: five to ten minutes without a use, and never longer than an hour.
	return cacheRules{least: cacheMinimum, keep: 5 * time.Minute, atMost: time.Hour}
}

// geminiRules are those of Gemini, for a model of any name.
func geminiRules(model string) cacheRules {
	// How long is not documented; five minutes are this simulator's.
	r := cacheRules{least: 4096, keep: 5 * time.Minute}
	if strings.HasPrefix(model, "gemini-2.5") {
		r.least = 2048
	}
	return r
}

// claudeLeast is how many tokens a cached prefix of a Claude model has at least.
func claudeLeast(model string) int64 {
	for _, t := range []struct {
		least int64
		names []string
	}{
		{512, []string{"fable-5", "mythos-5", "opus-5", "sonnet-5-5"}},
		{2048, []string{"opus-4-7", "haiku-3", "3-5-haiku", "3-haiku"}},
		{4096, []string{"opus-4-6", "opus-4-5", "haiku-4-5"}},
	} {
		for _, n := range t.names {
			if strings.Contains(model, n) {
				return t.least
			}
		}
	}
	return cacheMinimum
}

// dropsThinking is whether a model reads the thoughts of earlier turns no more: Haiku,
// Opus before 4.5 and Sonnet before 4.6.
func dropsThinking(model string) bool {
	if !strings.HasPrefix(model, "claude-") {
		return false
	}
	for _, kept := range []string{"opus-4-5", "opus-4-6", "opus-4-7", "opus-4-8", "opus-5", "sonnet-4-6", "sonnet-5", "fable", "mythos"} {
		if strings.Contains(model, kept) {
			return false
		}
	}
	return true
}

// gptVersion is the number in the name of an OpenAI model, such as 5.6, or 0.
func gptVersion(model string) float64 {
	rest, ok := strings.CutPrefix(model, "gpt-")
	if !ok {
		return 0
	}
	n := 0
	for n < len(rest) && (rest[n] == '.' || rest[n] >= '0' && rest[n] <= '9') {
		n++
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(rest[:n], "."), 64)
	if err != nil {
		return 0
	}
	return v
}
