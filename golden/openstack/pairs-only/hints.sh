#!/bin/bash
# Tells OpenStack of the VIPs of stack.example.com. Written by vipgen openstack-hints.
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

# allow PORT VIP... lets a port send and receive as each VIP that it may not yet.
allow() {
	local port=$1 pairs='' vip
	shift
	if [ -n "$apply" ]; then
		pairs=$(openstack port show -f json -c allowed_address_pairs "$port")
	fi
	for vip in "$@"; do
		case $pairs in
			*"\"$vip\""* | *"'$vip'"*) ;; # newer clients print JSON there, older ones text
			*) run openstack port set --allowed-address "ip-address=$vip" "$port" ;;
		esac
	done
}

allow 'it'\''s $(not) ${run}' 10.0.0.5

if [ -z "$apply" ]; then
	echo "nothing was done; to do it: $0 --apply" >&2
fi
