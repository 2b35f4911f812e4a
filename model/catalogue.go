package model

import (
	"math/bits"
	"slices"
	"strings"

	"agentd/message"
)

// What is assumed of a model that the catalogue does not know: small enough to
// be safe with the models people run at home.
const (
	DefaultContextWindow = 128_000
	DefaultMaxOutput     = 4_096
)

// Price is what a million tokens cost, by kind.
type Price struct {
	Input        message.Money
	Output       message.Money
	CacheRead    message.Money
	CacheWrite   message.Money // kept for five minutes, or however long the provider's default is
	CacheWrite1h message.Money // kept for an hour
}

// LongPrice is the price of every token of a call whose prompt is longer than
// Above tokens, cached ones included.
type LongPrice struct {
	Above int64
	Price Price
}

// ThinkingStyle says how a model is told to think.
type ThinkingStyle string

// The thinking styles.
const (
	ThinkingByEffort ThinkingStyle = ""         // a word for the effort, or not at all
	ThinkingByBudget ThinkingStyle = "budget"   // a number of tokens
	ThinkingByModel  ThinkingStyle = "adaptive" // the model decides; a word for the effort may guide it
)

// Info is what is known of a model.
type Info struct {
	Provider string
	ID       string
	// ContextWindow and MaxOutput are in tokens.
	ContextWindow int
	MaxOutput     int
	Price         Price
	Long          []LongPrice // ascending by Above
	Tiers         []Tier      // what costs another price than these
	Reasoning     bool
	Images        bool
	// Efforts are the provider's words for how hard to think, lowest first.
	Efforts []string
	// Thinking and ThinkingOff say how to turn thinking on and off. An empty
	// ThinkingOff means by not asking for it.
	Thinking    ThinkingStyle
	ThinkingOff string
	// NoSampling: temperature and top_p are refused. NoForcedTools: so is
	// naming the tool that must be called. NoSingleCall: so is asking for one
	// tool call at a time.
	NoSampling    bool
	NoForcedTools bool
	NoSingleCall  bool
	// Source says where the numbers are from, and of which day they are.
	Source string
}

// Priced reports whether the price is known. A model that costs nothing is
// priced; one that the catalogue does not know is not.
func (i *Info) Priced() bool { return i.Source != "" }

// Effort returns the model's word that is nearest to level, "" if it has none
// or the level leaves the choice to the model.
func (i *Info) Effort(level ThinkingLevel) string {
	var wanted []string
	switch level {
	case ThinkingOff:
		wanted = []string{"none", "minimal", "low"}
	case ThinkingMinimal:
		wanted = []string{"minimal", "low", "none"}
	case ThinkingLow:
		wanted = []string{"low", "minimal", "medium"}
	case ThinkingMedium:
		wanted = []string{"medium", "high", "low"}
	case ThinkingHigh:
		wanted = []string{"high", "xhigh", "max", "medium"}
	case ThinkingXHigh:
		wanted = []string{"xhigh", "max", "high"}
	case ThinkingMax:
		wanted = []string{"max", "xhigh", "high"}
	}
	for _, w := range wanted {
		if slices.Contains(i.Efforts, w) {
			return w
		}
	}
	if len(wanted) > 0 && len(i.Efforts) > 0 {
		return i.Efforts[len(i.Efforts)-1] // it has one effort only, such as high
	}
	return ""
}

// Cost prices what a call used, at the model's rate for a prompt of that
// length and for the tier that it was served in. Each kind of token is rounded up to a billionth of a dollar, and the
// total is the sum of the kinds.
func Cost(info *Info, u *message.Usage) message.Cost { return CostWith1h(info, u, 0) }

// CostWith1h is Cost for a call that wrote write1h of its CacheWrite tokens to
// be kept for an hour.
func CostWith1h(info *Info, u *message.Usage, write1h int64) message.Cost {
	if u == nil {
		return message.Cost{}
	}
	p := info.Price
	for _, l := range info.Long {
		if u.Prompt() > l.Above {
			p = l.Price
		}
	}
	p, known := info.tiered(p, u.Tier)
	write1h = min(max(write1h, 0), max(u.CacheWrite, 0))
	c := message.Cost{
		Input:      perMillion(u.Input, p.Input),
		Output:     perMillion(u.Output, p.Output),
		CacheRead:  perMillion(u.CacheRead, p.CacheRead),
		CacheWrite: plus(perMillion(u.CacheWrite-write1h, p.CacheWrite), perMillion(write1h, p.CacheWrite1h)),
		Estimated:  !known && info.Priced(),
	}
	c.Total = plus(plus(c.Input, c.Output), plus(c.CacheRead, c.CacheWrite))
	return c
}

// Saved is what a provider's cache saved of a call: the price of its prompt without a
// cache less what was paid for it. It is negative where writing cost more than reading
// saved, and 0 if nobody knows the price.
func Saved(info *Info, u *message.Usage) message.Money {
	if u == nil || !info.Priced() || u.CacheRead == 0 && u.CacheWrite == 0 {
		return 0
	}
	plain := message.Usage{Input: u.Prompt(), Tier: u.Tier}
	full := Cost(info, &plain)
	return full.Input - u.Cost.Input - u.Cost.CacheRead - u.Cost.CacheWrite
}

const maxMoney = message.Money(1<<63 - 1)

// perMillion is tokens × price ÷ 1,000,000, rounded up. It cannot overflow: an
// amount too large to hold becomes the largest.
func perMillion(tokens int64, price message.Money) message.Money {
	if tokens <= 0 || price <= 0 {
		return 0
	}
	const million = 1_000_000
	hi, lo := bits.Mul64(uint64(tokens), uint64(price))
	lo, carry := bits.Add64(lo, million-1, 0)
	hi += carry
	if hi >= million {
		return maxMoney
	}
	q, _ := bits.Div64(hi, lo, million)
	if q > uint64(maxMoney) {
		return maxMoney
	}
	return message.Money(q)
}

func plus(a, b message.Money) message.Money {
	if a > maxMoney-b {
		return maxMoney
	}
	return a + b
}

// Catalogue knows models by provider and id. It never changes once made.
type Catalogue struct{ models map[[2]string]Info }

// NewCatalogue returns the built-in models and extra ones. An extra model
// replaces a built-in one of the same provider and id; if it has no Source, it
// gets "configuration", because whoever wrote it vouches for its numbers.
func NewCatalogue(extra ...Info) *Catalogue {
	c := &Catalogue{models: map[[2]string]Info{}}
	for _, i := range append(withAzure(builtin()), geminis()...) {
		c.models[[2]string{i.Provider, i.ID}] = i
	}
	for _, i := range extra {
		if i.Source == "" {
			i.Source = "configuration"
		}
		if i.ContextWindow == 0 {
			i.ContextWindow = DefaultContextWindow
		}
		if i.MaxOutput == 0 {
			i.MaxOutput = DefaultMaxOutput
		}
		c.models[[2]string{i.Provider, i.ID}] = i
	}
	return c
}

// Lookup returns what is known of a model. An id with a date (-20251001,
// -2025-08-07) or -latest at its end is found under its undated id. Of an unknown
// model, Priced reports false and the window is the default. The Info always
// has the provider and the id that were asked for.
func (c *Catalogue) Lookup(provider, id string) Info {
	i, ok := c.models[[2]string{provider, id}]
	if !ok {
		i, ok = c.models[[2]string{provider, undated(id)}]
	}
	if !ok {
		i = Info{ContextWindow: DefaultContextWindow, MaxOutput: DefaultMaxOutput}
	}
	i.Provider, i.ID = provider, id
	return i
}

// Models returns the models of a provider, sorted by id.
func (c *Catalogue) Models(provider string) []Info {
	var out []Info
	for k, i := range c.models {
		if k[0] == provider {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b Info) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// undated cuts the date, or -latest, off an id.
func undated(id string) string {
	if s, ok := strings.CutSuffix(id, "-latest"); ok {
		return s
	}
	for _, layout := range []string{"-dddddddd", "-dddd-dd-dd"} {
		at := len(id) - len(layout)
		if at > 0 && matches(id[at:], layout) {
			return id[:at]
		}
	}
	return id
}

func matches(s, layout string) bool {
	for i := range len(s) {
		digit := s[i] >= '0' && s[i] <= '9'
		if layout[i] == 'd' && !digit || layout[i] != 'd' && s[i] != layout[i] {
			return false
		}
	}
	return true
}
