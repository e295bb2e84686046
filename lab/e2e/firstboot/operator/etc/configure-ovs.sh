#!/bin/sh
# Stands in for what ovs-configuration.service runs: a bridge of NetworkManager's, br-ex,
# takes over the interface that has the chosen address, with its MAC address, so that
# DHCP gives it the same. Done once, NetworkManager does it at each boot.
set -eu
if [ -e /etc/NetworkManager/system-connections/br-ex.nmconnection ]; then exit 0; fi
link=$(ip -o address show to "$(cat /run/nodeip-configuration/primary-ip)" | awk '{print $2; exit}')
mac=$(cat "/sys/class/net/$link/address")
nmcli connection add type bridge con-name br-ex ifname br-ex bridge.stp no bridge.mac-address "$mac" connection.autoconnect-priority 100
nmcli connection add type ethernet con-name br-ex-port ifname "$link" master br-ex connection.autoconnect-priority 100
nmcli connection up br-ex-port
nmcli --wait 60 connection up br-ex
