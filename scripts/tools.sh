#!/usr/bin/env bash
# Checks for what the other targets need, installs what it can (Debian, as
# root), and says plainly what it can not.
set -euo pipefail

need_go=1.26
if ! command -v go >/dev/null; then
	echo "Go $need_go or later is needed and Debian's package is older: install it from https://go.dev/dl/ and put it on the PATH." >&2
	exit 1
fi
have=$(go env GOVERSION | sed 's/^go//')
if [ "$(printf '%s\n%s\n' "$need_go" "$have" | sort -V | head -n 1)" != "$need_go" ]; then
	echo "Go $need_go or later is needed, this is $have: install it from https://go.dev/dl/" >&2
	exit 1
fi
[ "${1:-}" = go ] && exit 0

missing=()
command -v gcc >/dev/null || missing+=(gcc libc6-dev) # the race detector links with it
command -v git >/dev/null || missing+=(git)
command -v npm >/dev/null || missing+=(nodejs npm)
# Tests start servers of their own from its binaries.
compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null || command -v initdb >/dev/null || missing+=(postgresql)
# It checks systemd's units, whether or not systemd runs here.
[ "$(uname)" != Linux ] || command -v systemd-analyze >/dev/null || missing+=(systemd)
if [ ${#missing[@]} -gt 0 ]; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		apt-get update -qq
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
	else
		echo "These are missing and could not be installed: ${missing[*]}. Run: apt-get install ${missing[*]}" >&2
		exit 1
	fi
fi
