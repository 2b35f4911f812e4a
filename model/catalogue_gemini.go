package model

// Where the numbers of Gemini models are from. Prices are those of the day they were
// read; what is known to change is said.
const (
	sourceGemini4     = "docs.cloud.google.com/gemini-enterprise-agent-platform/models/guides/gemini-4-hydrogen and docs.litellm.ai discussion 51436, read 2026-11-21"
	sourceGeminiArgon = "ai.google.dev/gemini-api/docs/generate-content/latest-model, read 2026-11-21 (gemini-4-argon: promotional until 2026-11-30, then twice that)"
	sourceGeminiPromo = "ai.google.dev/gemini-api/docs/pricing as of 2026-10-07, by way of github.com/api-evangelist/deepmind and github.com/anomalyco/models.dev (promotional until 2026-12-31, then twice that)"
	sourceGemini36    = "ai.google.dev/gemini-api/docs/pricing as of 2026-07-21, by way of github.com/simstudioai/sim pull request 5812"
	sourceGeminiDev   = "github.com/anomalyco/models.dev providers/google, read 2026-11-21"
)

// geminis returns the Gemini models that are known without configuration.
func geminis() []Info {
	const window = 1_048_576
	return []Info{
		gemini("gemini-4-hydrogen", 1.50, 7.50, 0.075, window, sourceGemini4).efforts("low", "medium", "high", "xhigh"),
		gemini("gemini-4-argon", 2, 10, 0.10, window, sourceGeminiArgon).efforts("low", "medium", "high"),
		gemini("gemini-3.8-flash", 0.75, 3.75, 0.075, window, sourceGeminiPromo).efforts("low", "medium", "high"),
		gemini("gemini-3.7-flash", 0.75, 3.75, 0.075, window, sourceGeminiPromo).efforts("low", "medium", "high"),
		gemini("gemini-3.6-flash", 0.75, 3.75, 0.075, window, sourceGeminiPromo).efforts("minimal", "low", "medium", "high"),
		gemini("gemini-3.5-flash-lite", 0.30, 2.50, 0.03, window, sourceGemini36).efforts("minimal", "low", "medium", "high"),
		gemini("gemini-3.5-flash", 1.50, 9, 0.15, window, sourceGeminiDev).efforts("minimal", "low", "medium", "high").sampled(),
		gemini("gemini-3.1-pro-preview", 2, 12, 0.20, window, sourceGeminiDev).long(200_000, 2, 1.5).efforts("low", "medium", "high").sampled(),
		gemini("gemini-3.1-flash-lite", 0.25, 1.50, 0.025, window, sourceGeminiDev).efforts("minimal", "low", "medium", "high").sampled(),
		gemini("gemini-3-flash-preview", 0.50, 3, 0.05, window, sourceGeminiDev).efforts("minimal", "low", "medium", "high").sampled(),
		gemini("gemini-2.5-pro", 1.25, 10, 0.125, window, sourceGeminiDev).long(200_000, 2, 1.5).tokens(""),
		gemini("gemini-2.5-flash", 0.30, 2.50, 0.03, window, sourceGeminiDev).tokens("0"),
		gemini("gemini-2.5-flash-lite", 0.10, 0.40, 0.01, window, sourceGeminiDev).tokens("0"),
	}
}

// gemini is a Gemini model: what is cached costs nothing to write, and one reply has at
// most 65,536 tokens, thoughts included.
func gemini(id string, in, out, read float64, window int, source string) Info {
	i := Info{
		Provider: "gemini", ID: id, ContextWindow: window, MaxOutput: 65_536, Images: true, NoSingleCall: true, Source: source,
		Price: Price{Input: usd(in), Output: usd(out), CacheRead: usd(read), CacheWrite: usd(in), CacheWrite1h: usd(in)},
	}
	return i.flexed()
}

// tokens: thinking is bought by the token, and off says how it is turned off.
func (i Info) tokens(off string) Info {
	i.Reasoning, i.Thinking, i.ThinkingOff = true, ThinkingByBudget, off
	return i
}

// sampled: it reasons, and takes a temperature all the same.
func (i Info) sampled() Info { i.NoSampling = false; return i }
