package model

import (
	"math"

	"agentd/message"
)

// Where the numbers of the table are from. "Read" is the day the source was
// read; prices change, and NewCatalogue takes corrections.
const (
	sourceClaude    = "platform.claude.com/docs/en/about-claude/pricing and /docs/en/models, read 2026-11-21"
	sourceClaudeOct = "platform.claude.com/docs/en/about-claude/pricing as of 2026-10-24, by way of github.com/kurofune/claudit v1.9.2"
	sourceGPT       = "developers.openai.com/api/docs/pricing as of 2026-09-25, by way of github.com/yologdev/yoagent prices.json"
	sourceGPT56     = "developers.openai.com/api/docs/models, read 2026-11-21 (gpt-5.6-sol: promotional until at least 2026-11-21)"
	sourceGPT61     = "developers.openai.com/api/docs/models as of 2026-09-30, by way of github.com/amine123max/Codex-Manager 0.4.7"
	sourceTerra61   = "docs.litellm.ai/blog/gpt-6-1-terra, read 2026-11-21"
	sourceModelsDev = "github.com/anomalyco/models.dev at f3fc692 of 2026-07-02"
)

// builtin returns the models that are known without configuration.
func builtin() []Info {
	return []Info{
		claude("claude-fable-5-1", 10, 50, 0.25, 1_000_000, 128_000, sourceClaude).always().unforced().residency(),
		claude("claude-fable-5", 10, 50, 1, 1_000_000, 128_000, sourceClaude).always().residency(),
		claude("claude-opus-5-5", 4, 20, 0.20, 1_000_000, 128_000, sourceClaude).always().unforced().residency().fast(),
		claude("claude-opus-5", 5, 25, 0.50, 1_000_000, 128_000, sourceClaude).adaptive("disabled", "xhigh", "max").unsampled().residency().fast(),
		claude("claude-opus-4-8", 5, 25, 0.50, 1_000_000, 128_000, sourceClaude).adaptive("", "xhigh", "max").unsampled().residency().fast(),
		claude("claude-opus-4-7", 5, 25, 0.50, 1_000_000, 128_000, sourceClaude).adaptive("", "xhigh", "max").unsampled().residency(),
		claude("claude-opus-4-6", 5, 25, 0.50, 1_000_000, 128_000, sourceClaude).adaptive("disabled", "max").residency(),
		claude("claude-opus-4-5", 5, 25, 0.50, 200_000, 64_000, sourceClaude).budget(),
		claude("claude-opus-4-1", 15, 75, 1.50, 200_000, 32_000, sourceClaude).budget(),
		claude("claude-opus-4-0", 15, 75, 1.50, 200_000, 32_000, sourceModelsDev).budget(),
		claude("claude-opus-4", 15, 75, 1.50, 200_000, 32_000, sourceModelsDev).budget(),
		claude("claude-sonnet-5-5", 2, 10, 0.10, 1_000_000, 128_000, sourceClaudeOct).adaptive("between_tools", "xhigh", "max").unsampled().unforced().residency(),
		claude("claude-sonnet-5", 2, 10, 0.20, 1_000_000, 128_000, sourceClaude).adaptive("disabled", "xhigh", "max").unsampled().residency(),
		claude("claude-sonnet-4-6", 3, 15, 0.30, 1_000_000, 64_000, sourceModelsDev).adaptive("disabled", "max").residency(),
		claude("claude-sonnet-4-5", 3, 15, 0.30, 200_000, 64_000, sourceModelsDev).budget(),
		claude("claude-sonnet-4-0", 3, 15, 0.30, 200_000, 64_000, sourceModelsDev).budget(),
		claude("claude-sonnet-4", 3, 15, 0.30, 200_000, 64_000, sourceModelsDev).budget(),
		claude("claude-3-7-sonnet", 3, 15, 0.30, 200_000, 64_000, sourceModelsDev).budget(),
		claude("claude-haiku-5-5", 0.10, 0.50, 0.01, 1_000_000, 128_000, sourceClaudeOct).
			adaptive("disabled", "xhigh", "max").unsampled().long(100_000, 5, 5).residency(),
		claude("claude-haiku-4-5", 1, 5, 0.10, 200_000, 64_000, sourceModelsDev).budget(),

		gpt("gpt-6.1-sol", 2, 10, 0.10, 1_050_000, 128_000, sourceGPT61).writes().long(272_000, 2, 1.5).efforts("low", "medium", "high", "xhigh", "max"),
		gpt("gpt-6.1-terra", 1, 5, 0.05, 1_050_000, 128_000, sourceTerra61).writes().long(272_000, 2, 1.5).efforts("none", "low", "medium", "high", "xhigh", "max"),
		gpt("gpt-6-astra", 10, 50, 1, 1_050_000, 128_000, sourceGPT).writes().long(272_000, 2, 1.5).efforts("low", "medium", "high", "xhigh", "max"),
		gpt("gpt-6-sol", 2, 10, 0.20, 1_050_000, 128_000, sourceGPT).writes().long(272_000, 2, 1.5).efforts("none", "low", "medium", "high", "xhigh", "max"),
		gpt("gpt-6-luna", 0.10, 0.50, 0.01, 1_050_000, 128_000, sourceGPT).writes().long(272_000, 2, 1.5).efforts("none", "low", "medium", "high", "xhigh", "max"),
		gpt("gpt-5.6", 4, 20, 0.40, 1_050_000, 128_000, sourceGPT56).writes().long(272_000, 2, 1.5).efforts("none", "low", "medium", "high", "xhigh", "max").priority(2000),
		gpt("gpt-5.6-sol", 4, 20, 0.40, 1_050_000, 128_000, sourceGPT56).writes().long(272_000, 2, 1.5).efforts("none", "low", "medium", "high", "xhigh", "max").priority(2000),
		gpt("gpt-5.6-terra", 2, 12, 0.20, 1_050_000, 128_000, sourceGPT56).writes().long(272_000, 2, 1.5).efforts("none", "low", "medium", "high", "xhigh", "max").priority(2000),
		gpt("gpt-5.6-luna", 0.20, 1.20, 0.02, 1_050_000, 128_000, sourceGPT56).writes().long(272_000, 2, 1.5).efforts("none", "low", "medium", "high", "xhigh", "max").priority(2000),
		gpt("gpt-5.5", 5, 30, 0.50, 1_050_000, 128_000, sourceModelsDev).long(272_000, 2, 1.5).efforts("none", "low", "medium", "high", "xhigh").priority(2500),
		gpt("gpt-5.4", 2.50, 15, 0.25, 1_050_000, 128_000, sourceModelsDev).long(272_000, 2, 1.5).efforts("none", "low", "medium", "high", "xhigh").priority(2000),
		gpt("gpt-5.4-mini", 0.75, 4.50, 0.075, 400_000, 128_000, sourceModelsDev).efforts("none", "low", "medium", "high", "xhigh").priority(2000),
		gpt("gpt-5.4-nano", 0.20, 1.25, 0.02, 400_000, 128_000, sourceModelsDev).efforts("none", "low", "medium", "high", "xhigh"),
		gpt("gpt-5.2", 1.75, 14, 0.175, 400_000, 128_000, sourceModelsDev).efforts("none", "low", "medium", "high", "xhigh").priority(2000),
		gpt("gpt-5.1", 1.25, 10, 0.125, 400_000, 128_000, sourceModelsDev).efforts("none", "low", "medium", "high").priority(2000),
		gpt("gpt-5", 1.25, 10, 0.125, 400_000, 128_000, sourceModelsDev).efforts("minimal", "low", "medium", "high").priority(2000),
		gpt("gpt-5-mini", 0.25, 2, 0.025, 400_000, 128_000, sourceModelsDev).efforts("minimal", "low", "medium", "high").priority(1800),
		gpt("gpt-5-nano", 0.05, 0.40, 0.005, 400_000, 128_000, sourceModelsDev).efforts("minimal", "low", "medium", "high"),
		gpt("o4-mini", 1.10, 4.40, 0.275, 200_000, 100_000, sourceModelsDev).efforts("low", "medium", "high").multiple(),
		gpt("o3", 2, 8, 0.50, 200_000, 100_000, sourceModelsDev).efforts("low", "medium", "high").multiple(),
		gpt("o3-mini", 1.10, 4.40, 0.55, 200_000, 100_000, sourceModelsDev).efforts("low", "medium", "high").multiple().blind(),
		gpt("o1", 15, 60, 7.50, 200_000, 100_000, sourceModelsDev).efforts("low", "medium", "high").multiple(),
		gpt("gpt-4.1", 2, 8, 0.50, 1_047_576, 32_768, sourceModelsDev).priority(1750),
		gpt("gpt-4.1-mini", 0.40, 1.60, 0.10, 1_047_576, 32_768, sourceModelsDev),
		gpt("gpt-4.1-nano", 0.10, 0.40, 0.025, 1_047_576, 32_768, sourceModelsDev),
		gpt("gpt-4o-2024-05-13", 5, 15, 5, 128_000, 4_096, sourceModelsDev), // no discount for cached tokens
		gpt("gpt-4o", 2.50, 10, 1.25, 128_000, 16_384, sourceModelsDev),
		gpt("gpt-4o-mini", 0.15, 0.60, 0.075, 128_000, 16_384, sourceModelsDev),
	}
}

// usd turns dollars as price lists write them into money. The literals of the
// table have at most four decimals, which a float holds well enough to round.
func usd(f float64) message.Money { return message.Money(math.Round(f * float64(message.Dollar))) }

// claude is a Claude model: a cache write costs 1.25 times the input for five
// minutes and twice the input for an hour.
func claude(id string, in, out, read float64, window, maxOut int, source string) Info {
	i := Info{
		Provider: "anthropic", ID: id, ContextWindow: window, MaxOutput: maxOut, Images: true, Source: source,
		Price: Price{Input: usd(in), Output: usd(out), CacheRead: usd(read), CacheWrite: usd(in * 1.25), CacheWrite1h: usd(in * 2)},
	}
	return i.tier("batch", 500)
}

// gpt is an OpenAI model without a charge of its own for cache writes: a token
// that is written costs what it costs as input.
func gpt(id string, in, out, read float64, window, maxOut int, source string) Info {
	i := Info{
		Provider: "openai", ID: id, ContextWindow: window, MaxOutput: maxOut, Images: true, Source: source,
		Price: Price{Input: usd(in), Output: usd(out), CacheRead: usd(read), CacheWrite: usd(in), CacheWrite1h: usd(in)},
	}
	return i.flexed()
}

// budget: thinking is bought by the token.
func (i Info) budget() Info {
	i.Reasoning, i.Thinking, i.ThinkingOff = true, ThinkingByBudget, "disabled"
	return i
}

// adaptive: the model decides, guided by an effort of low, medium, high or one
// of more.
func (i Info) adaptive(off string, more ...string) Info {
	i.Reasoning, i.Thinking, i.ThinkingOff = true, ThinkingByModel, off
	i.Efforts = append([]string{"low", "medium", "high"}, more...)
	return i
}

// always: as adaptive, and thinking cannot be turned off.
func (i Info) always() Info { return i.adaptive("", "xhigh", "max").unsampled() }

func (i Info) unsampled() Info { i.NoSampling = true; return i }
func (i Info) unforced() Info  { i.NoForcedTools = true; return i }
func (i Info) blind() Info     { i.Images = false; return i }
func (i Info) multiple() Info  { i.NoSingleCall = true; return i }

func (i Info) efforts(words ...string) Info {
	i.Reasoning, i.NoSampling, i.Efforts = true, true, words
	return i
}

// writes: from GPT-5.6 on a cache write costs 1.25 times the input (30 minutes)
// or 2.5 times (12 hours); nothing here asks for the longer time.
func (i Info) writes() Info {
	i.Price.CacheWrite = i.Price.Input * 5 / 4
	i.Price.CacheWrite1h = i.Price.CacheWrite
	return i
}

// long adds the price of prompts above a length: everything read costs in times
// as much, and the output out times.
func (i Info) long(above int64, in, out float64) Info {
	by := func(m message.Money, f float64) message.Money { return message.Money(math.Round(float64(m) * f)) }
	i.Long = append(i.Long, LongPrice{Above: above, Price: Price{
		Input: by(i.Price.Input, in), Output: by(i.Price.Output, out), CacheRead: by(i.Price.CacheRead, in),
		CacheWrite: by(i.Price.CacheWrite, in), CacheWrite1h: by(i.Price.CacheWrite1h, in),
	}})
	return i
}
