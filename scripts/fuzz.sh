#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time.
set -euo pipefail
time=${1:-20s}
cd "$(dirname "$0")/.."
grep -rlE '^func Fuzz' --include='*_test.go' . | grep -v node_modules | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -hoE '^func (Fuzz[A-Za-z0-9_]+)' "$dir"/*_test.go | awk '{print $2}' | sort -u | while read -r target; do
		echo "== $dir $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$dir"
	done
done
