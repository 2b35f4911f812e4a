package run

import (
	"cmp"
	"slices"
)

// ModelFacts is what is known of a model when a run starts. They are part of the
// Started input, so that the choice can be explained and replayed.
type ModelFacts struct {
	// Price is comparable with that of the other models; 0: not known.
	Price int64 `json:"price,omitempty"`
	// LatencyMS is how long its replies took to begin lately; 0: not measured.
	LatencyMS int64 `json:"latency_ms,omitempty"`
}

// Order is in which order models are tried. It is a function of its arguments:
//
//   - single: the first one alone;
//   - cost_aware: the cheapest first; those whose price is not known come last;
//   - latency_aware: the fastest first; those that were not measured lately come
//     before it, as nobody knows how fast they are unless they are asked;
//   - fallback, and anything else: as they are configured.
//
// Equals stay in the order of the configuration.
func Order(strategy string, facts []ModelFacts) []int {
	order := make([]int, len(facts))
	for i := range order {
		order[i] = i
	}
	switch strategy {
	case "single":
		return order[:min(1, len(order))]
	case "cost_aware":
		slices.SortStableFunc(order, func(a, b int) int {
			pa, pb := facts[a].Price, facts[b].Price
			if (pa == 0) != (pb == 0) {
				return cmp.Compare(pb, pa)
			}
			return cmp.Compare(pa, pb)
		})
	case "latency_aware":
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(facts[a].LatencyMS, facts[b].LatencyMS) })
	}
	return order
}

// first is the model that a run begins with.
func (s *Settings) first() int {
	if len(s.Order) > 0 && s.Order[0] >= 0 && s.Order[0] < s.Models {
		return s.Order[0]
	}
	return 0
}

// next is the model to fall back on from one, if there is any.
func (s *Settings) next(index int) (int, bool) {
	if len(s.Order) == 0 {
		return index + 1, index+1 < s.Models
	}
	i := slices.Index(s.Order, index) + 1
	if i == 0 || i >= len(s.Order) || s.Order[i] < 0 || s.Order[i] >= s.Models {
		return 0, false
	}
	return s.Order[i], true
}
