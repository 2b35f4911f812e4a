#!/bin/sh
# Makes the passwords of compose.yaml in the folder secrets beside this script. What is there stays as it is.
# The folder is yours alone; the files in it can be read by the users of the containers, into which they are mounted.
set -eu
dir=$(dirname "$0")/secrets
mkdir -p "$dir"
chmod 0700 "$dir"
make() { # NAME: a random password
	[ -s "$dir/$1" ] || (umask 022 && od -An -N24 -tx1 /dev/urandom | tr -d ' \n' > "$dir/$1")
}
make postgres_password
make agentd_password
make temporal_password
(umask 022 && printf '*:*:*:agentd:%s\n' "$(cat "$dir/agentd_password")" > "$dir/agentd_pgpass")
# Temporal's image takes its password from the environment alone.
[ -e "$dir/temporal.env" ] || (umask 077 && printf 'POSTGRES_PWD=%s\n' "$(cat "$dir/temporal_password")" > "$dir/temporal.env")
# Keys of model providers: ANTHROPIC_API_KEY=…, OPENAI_API_KEY=…
[ -e "$dir/agentd.env" ] || (umask 077 && : > "$dir/agentd.env")
echo "secrets are in $dir; put the keys of model providers into $dir/agentd.env"
