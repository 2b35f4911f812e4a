#!/usr/bin/env bash
# Builds agentd, the benchmark and the peer, and runs the benchmark. Arguments go
# to the benchmark: `bench/run.sh -only loop -rounds 3`. See bench/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
out=.cache/bench
export CGO_ENABLED=0 # as agentd is built and shipped
mkdir -p "$out"
$go build -ldflags '-s -w' -o "$out/agentd" ./cmd/agentd # without debugging information, as `make dist` builds it
$go build -o "$out/bench" ./bench
(cd bench/peers && $go build -o "../../$out/peer" .)
js=()
if command -v node >/dev/null && (cd bench/peers-js && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null); then
	js=(-langgraph "$PWD/bench/peers-js/loop.mjs")
else
	echo "bench: LangGraph.js is left out: its packages (Node 18 or later, npm) can not be installed here" >&2
fi
exec scripts/postgres.sh "$out/bench" -agentd "$out/agentd" -peer "$out/peer" "${js[@]}" "$@"
