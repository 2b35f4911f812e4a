#!/usr/bin/env bash
# Starts a throw-away PostgreSQL server, runs a command with AGENTD_STORE naming its
# database, and removes both when the command ends:
#   scripts/postgres.sh bin/agentd serve
# The server is reached by a socket in its own folder alone and waits for the disk.
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: $0 COMMAND [ARGUMENT…]" >&2; exit 2; }
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
if [ -z "$bin" ]; then
	initdb=$(command -v initdb) || { echo "PostgreSQL is not installed: run scripts/tools.sh, or apt-get install postgresql" >&2; exit 1; }
	bin=$(dirname "$(readlink -f "$initdb")")
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/agentd-pg-XXXXXX")
as=()
if [ "$(id -u)" = 0 ]; then # PostgreSQL refuses to be root
	chown postgres "$dir"
	as=(setpriv --reuid postgres --regid postgres --clear-groups)
fi
run() { (cd "$dir" && "${as[@]}" "$@"); }
stop() {
	run "$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1 || true
	rm -rf "$dir"
}
trap stop EXIT
run "$bin/initdb" -D "$dir/data" -U agentd -A trust -E UTF8 --locale=C --no-sync >/dev/null
run "$bin/pg_ctl" -D "$dir/data" -w -l "$dir/log" -o "-k $dir -c listen_addresses=''" start >/dev/null
AGENTD_STORE="postgres://agentd@/postgres?host=$dir" "$@"
