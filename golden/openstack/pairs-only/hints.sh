#!/bin/bash
# Registers the VIPs of stack.example.com with OpenStack. Written by vipgen openstack-hints.
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

# allow PORT VIP... adds the missing VIPs to the allowed addresses of a port.
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
