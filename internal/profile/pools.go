package profile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"agentd/fault"
)

var poolRE = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// PoolRun is the pool of nodes that drive runs.
const PoolRun = "run"

// Pool is the whole name of a pool of calls of a kind (model or tool): KIND.NAME, or
// "" for a call that names none.
func Pool(kind, name string) string {
	if name == "" {
		return ""
	}
	return kind + "." + name
}

// ServedPools reads the pools that a node serves, as the flag --pools has them, between
// commas. Nil is all of them. The error is a *fault.Error.
func ServedPools(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	out := []string{}
	for p := range strings.SplitSeq(s, ",") {
		if p = strings.TrimSpace(p); !servedPool(p) {
			return nil, &fault.Error{Kind: fault.Invalid, Field: "pools", Err: fmt.Errorf("%q is not a pool that a node can serve", p), Hint: poolHint}
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "pools", Err: errors.New("it names no pool"), Hint: poolHint}
	}
	return out, nil
}

const poolHint = "use run, model, tool, model.NAME and tool.NAME, with a name of 1 to 32 small letters, digits, _ or -"

func servedPool(s string) bool {
	kind, name, named := strings.Cut(s, ".")
	return kind == PoolRun && !named || (kind == "model" || kind == "tool") && (!named || poolRE.MatchString(name))
}
