#!/usr/bin/env bash
# Builds agentd, the benchmark and the peer, and runs the benchmark. Arguments go
# to the benchmark: `bench/run.sh -only loop -rounds 3`. See bench/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
out=.cache/bench
mkdir -p "$out"
$go build -ldflags '-s -w' -o "$out/agentd" ./cmd/agentd # without debugging information, as `make dist` builds it
$go build -o "$out/bench" ./bench
(cd bench/peers && $go build -o "../../$out/peer" .)
exec scripts/postgres.sh "$out/bench" -agentd "$out/agentd" -peer "$out/peer" "$@"
