#!/bin/bash
# Registers the VIPs of cnf10.example.com with OpenStack. Written by vipgen openstack-hints.
# Without --apply it prints the commands, and neither reads nor changes OpenStack.
# It can be run again: existing objects stay as they are.
#
# Names are in single quotes, so the shell expands nothing in them:
# shellcheck disable=SC2016
set -euo pipefail

apply=''
case "$#:${1-}" in
	0:) ;;
	1:--apply) apply=yes ;;
	*) echo "usage: $0 [--apply]" >&2; exit 2 ;;
esac

# run prints a command, and with --apply runs it.
run() {
	printf '%q' "$1"
	printf ' %q' "${@:2}"
	printf '\n'
	if [ -n "$apply" ]; then
		"$@"
	fi
}

run openstack floating ip set --port 'cnf10-ingress-port' --fixed-ip-address 10.0.0.7 203.0.113.11

if [ -z "$apply" ]; then
	echo "nothing was done; to do it: $0 --apply" >&2
fi
