#!/bin/bash
# Tells OpenStack of the VIPs of cnf10.example.com. Written by vipgen openstack-hints.
# Without --apply it shows what it would do, asks OpenStack nothing and changes nothing.
# It can be run again: what is there already is left alone.
#
# Names stand in single quotes, so that nothing in them means anything:
# shellcheck disable=SC2016
set -euo pipefail

apply=''
case "$#:${1-}" in
	0:) ;;
	1:--apply) apply=yes ;;
	*) echo "usage: $0 [--apply]" >&2; exit 2 ;;
esac

# run shows a command, and with --apply runs it.
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
