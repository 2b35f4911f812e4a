package message

import (
	"fmt"
	"math/big"
	"strconv"
)

// Usage is what one model call used. Input excludes cached tokens: the whole
// prompt is Input + CacheRead + CacheWrite.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead,omitempty"`
	CacheWrite int64 `json:"cacheWrite,omitempty"`
	// Reasoning is the part of Output that was spent thinking.
	Reasoning   int64 `json:"reasoning,omitempty"`
	TotalTokens int64 `json:"totalTokens"`
	// Estimated: the provider did not say (all of) it, because the call was cut or
	// cancelled. Of a sum it says that a part is.
	Estimated bool `json:"estimated,omitempty"`
	// Tier is how the provider served the call where that is not its usual service, in
	// its own words (flex, priority, batch, fast, a place such as us), joined by a plus
	// sign. A sum has none.
	Tier string `json:"tier,omitempty"`
	// Cost is fixed when the call settles and never recomputed.
	Cost Cost `json:"cost"`
}

// Cost is the price of a call, by kind of token.
type Cost struct {
	Input      Money `json:"input"`
	Output     Money `json:"output"`
	CacheRead  Money `json:"cacheRead"`
	CacheWrite Money `json:"cacheWrite"`
	Total      Money `json:"total"`
	// Estimated: nobody knows what the tier of the call costs, so it was priced as
	// usual. Of a sum it says that a part is.
	Estimated bool `json:"estimated,omitempty"`
}

// Prompt is the number of tokens that the model read.
func (u *Usage) Prompt() int64 { return u.Input + u.CacheRead + u.CacheWrite }

// Add adds v to u.
func (u *Usage) Add(v *Usage) {
	if v == nil {
		return
	}
	u.Input += v.Input
	u.Output += v.Output
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.Reasoning += v.Reasoning
	u.TotalTokens += v.TotalTokens
	u.Estimated = u.Estimated || v.Estimated
	u.Cost.Input += v.Cost.Input
	u.Cost.Output += v.Cost.Output
	u.Cost.CacheRead += v.Cost.CacheRead
	u.Cost.CacheWrite += v.Cost.CacheWrite
	u.Cost.Total += v.Cost.Total
	u.Cost.Estimated = u.Cost.Estimated || v.Cost.Estimated
	u.Tier = ""
}

// Money is an amount in billionths of a US dollar, so that sums are exact.
// In JSON it is a decimal number of dollars.
type Money int64

// Dollar is one US dollar.
const Dollar Money = 1_000_000_000

// String formats the amount as a decimal number of dollars without trailing zeros.
func (m Money) String() string { return string(m.append(nil)) }

func (m Money) append(b []byte) []byte {
	u := uint64(m)
	if m < 0 {
		b, u = append(b, '-'), -u
	}
	b = strconv.AppendUint(b, u/uint64(Dollar), 10)
	frac := u % uint64(Dollar)
	if frac == 0 {
		return b
	}
	b = append(b, '.')
	for unit := uint64(Dollar / 10); frac > 0; unit /= 10 {
		b = append(b, '0'+byte(frac/unit))
		frac %= unit
	}
	return b
}

// ParseMoney reads a decimal number of dollars with at most nine decimals.
func ParseMoney(s string) (Money, error) {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return 0, fmt.Errorf("%q is not an amount in dollars", s)
	}
	r.Mul(r, new(big.Rat).SetInt64(int64(Dollar)))
	if !r.IsInt() || !r.Num().IsInt64() {
		return 0, fmt.Errorf("%q is not an amount in dollars with at most nine decimals", s)
	}
	return Money(r.Num().Int64()), nil
}

// MarshalJSON writes the amount as a decimal number.
func (m Money) MarshalJSON() ([]byte, error) { return m.append(nil), nil }

// UnmarshalJSON reads a decimal number.
func (m *Money) UnmarshalJSON(b []byte) error {
	v, err := ParseMoney(string(b))
	*m = v
	return err
}
