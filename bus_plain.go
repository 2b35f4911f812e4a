//go:build !nats

package agentd

import (
	"errors"

	"agentd/fault"
	"agentd/internal/profile"
)

// natsBus is not in this program: linking a NATS server makes it a tenth larger, and
// its memory more than that, for all who do not use one.
func natsBus(*profile.NATS, string, string, bool) (closingBus, error) {
	return nil, &fault.Error{Op: "agentd.Open", Kind: fault.Unsupported, Field: "cluster.bus", Err: errors.New("this agentd was built without NATS"),
		Hint: "Build it with `go build -tags nats ./cmd/agentd`, or set cluster.bus to notify."}
}
