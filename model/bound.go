package model

import "agentd/message"

// MaxCost is the most that a call can cost whose prompt has at most so many tokens,
// and its reply so many: at the dearest rate that may apply to each. Prompts that
// are kept for an hour, which nobody asks for, are not thought of. Of a model whose
// price is not known it is 0: ask [Info.Priced] first.
func MaxCost(info *Info, prompt, output int64) message.Money {
	// Each of three kinds of tokens of the prompt is rounded up by itself.
	const rounding = 2
	var most message.Money
	consider := func(p *Price) {
		in := perMillion(prompt, max(p.Input, p.CacheRead, p.CacheWrite))
		if in > 0 {
			in = plus(in, rounding)
		}
		most = max(most, plus(in, perMillion(output, p.Output)))
	}
	consider(&info.Price)
	for i := range info.Long {
		if prompt > info.Long[i].Above {
			consider(&info.Long[i].Price)
		}
	}
	return most
}
