package agentd

import (
	"strconv"

	"agentd/internal/mcp"
	"agentd/internal/telemetry"
)

// gauges are the states of what stands between runs and the world. Values of one
// name are together, as Prometheus wants them.
func (rt *Runtime) gauges() []telemetry.Gauge {
	var circuits, used, waiting, limit, up, restarts []telemetry.Gauge
	gauge := func(into *[]telemetry.Gauge, name, help string, value int, labels ...[2]string) {
		*into = append(*into, telemetry.Gauge{Name: name, Help: help, Labels: labels, Value: float64(value)})
	}
	place := func(kind, name string, inUse, wait, max int) {
		labels := [][2]string{{"kind", kind}, {"name", name}, {"limit", strconv.Itoa(max)}}
		gauge(&used, "agentd.bulkhead.used", "Calls that hold a place (concurrency_limit), of a provider or an MCP server.", inUse, labels...)
		gauge(&waiting, "agentd.bulkhead.waiting", "Calls that wait for a place.", wait, labels...)
		gauge(&limit, "agentd.bulkhead.limit", "Places that there are.", max, labels...)
	}
	for _, s := range rt.agents.guards.States() {
		if s.Limit > 0 {
			place(s.Kind, s.Name, s.Used, s.Waiting, s.Limit)
			continue
		}
		state := map[string]int{"half_open": 1, "open": 2}[s.Circuit]
		gauge(&circuits, "agentd.breaker.state", "Circuit breakers: 0 closed, 1 half open, 2 open.", state, [2]string{"kind", s.Kind}, [2]string{"name", s.Name},
			[2]string{"server", s.Server}, [2]string{"tenant", s.Tenant}, [2]string{"failures", strconv.Itoa(s.Breaker.Failures)}, [2]string{"cooldown", s.Breaker.Cooldown.String()})
	}
	for _, l := range rt.agents.servers.Loads() {
		place("server", l.Server, l.Running, l.Waiting, l.Limit)
		ready := 0
		if l.State == mcp.Ready {
			ready = 1
		}
		gauge(&up, "agentd.mcp.up", "1 while an MCP server is connected.", ready, [2]string{"server", l.Server})
		gauge(&restarts, "agentd.mcp.restarts", "Connections to an MCP server after the first.", l.Restarts, [2]string{"server", l.Server})
	}
	var pending, started, nodes []telemetry.Gauge
	for _, l := range rt.poolLoads() {
		pool := [2]string{"pool", l.Pool}
		gauge(&pending, "agentd.pool.pending", "Calls that wait for a node of a pool, of all nodes' runs.", l.Pending, pool)
		gauge(&started, "agentd.pool.started", "Calls of a pool that are being made, at any node.", l.Started, pool)
		gauge(&nodes, "agentd.pool.nodes", "Nodes that serve a pool that has calls.", l.Nodes, pool)
	}
	out := []telemetry.Gauge{{Name: "agentd.rate.waiting", Help: "Model calls that wait for rate_limits.", Value: float64(rt.engine.CallsWaiting())}}
	for _, list := range [][]telemetry.Gauge{circuits, used, waiting, limit, up, restarts, pending, started, nodes} {
		out = append(out, list...)
	}
	return out
}
