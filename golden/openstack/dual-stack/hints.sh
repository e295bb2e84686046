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

# reserve NETWORK PORT VIP... creates a port that reserves the VIPs, if it is missing. No server
# uses the port, so its state is DOWN.
reserve() {
	local network=$1 port=$2 vip args=()
	shift 2
	if [ -n "$apply" ] && openstack port show -f value -c id "$port" >/dev/null 2>&1; then
		return
	fi
	for vip in "$@"; do
		args+=(--fixed-ip "ip-address=$vip")
	done
	run openstack port create --network "$network" "${args[@]}" "$port"
}

reserve 'machines' 'stack-api-port' 192.168.25.10 fd2e:6f44:5dd8:c956:f816:3eff:fec3:5955
reserve 'machines' 'stack-ingress-port' 192.168.25.11 fd2e:6f44:5dd8:c956:f816:3eff:fe40:aecb
allow '87295f6b-75ed-4420-9548-a37d4ae137fc' 192.168.25.11 fd2e:6f44:5dd8:c956:f816:3eff:fe40:aecb
allow 'stack-master-0' 192.168.25.10 fd2e:6f44:5dd8:c956:f816:3eff:fec3:5955
run openstack floating ip set --port 'stack-api-port' --fixed-ip-address 192.168.25.10 203.0.113.10
run openstack floating ip set --port 'stack-ingress-port' --fixed-ip-address 192.168.25.11 203.0.113.11

if [ -z "$apply" ]; then
	echo "nothing was done; to do it: $0 --apply" >&2
fi
