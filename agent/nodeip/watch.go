package nodeip

import (
	"context"
	"fmt"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const (
	// quiet is how long nothing must change before a change is reported: a
	// bond, bridge or VLAN comes up in many steps.
	quiet = 200 * time.Millisecond
	// longest is how long a change waits while others follow it.
	longest = 2 * time.Second
)

// Watch reports, on a channel with room for one report, that links, addresses
// or routes may have changed in the network namespace that the calling thread
// is in. Much of what it reports changes nothing: take a [Snapshot] and compare
// what comes of it. The channel is closed some time after ctx is done.
func Watch(ctx context.Context) (<-chan struct{}, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK,
		unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("watching the network: %w", err)
	}
	changes := make(chan struct{}, 1)
	reports := make(chan struct{}, 1)
	stop := context.AfterFunc(ctx, s.Close)
	go func() {
		defer stop()
		defer close(changes)
		receive(ctx, s, changes)
	}()
	go func() {
		defer close(reports)
		debounce(changes, reports)
	}()
	return reports, nil
}

// receive takes every message, and every error too, for a change: when messages
// came faster than they were read, the kernel drops some and says ENOBUFS.
func receive(ctx context.Context, s *nl.NetlinkSocket, changes chan<- struct{}) {
	for ctx.Err() == nil {
		_, _, err := s.Receive()
		if ctx.Err() != nil {
			return
		}
		report(changes)
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(longest):
			}
		}
	}
}

// debounce turns bursts of changes into single reports.
func debounce(changes <-chan struct{}, reports chan<- struct{}) {
	for range changes {
		last := time.After(longest)
		for settled := false; !settled; {
			select {
			case _, ok := <-changes:
				settled = !ok
			case <-time.After(quiet):
				settled = true
			case <-last:
				settled = true
			}
		}
		report(reports)
	}
}

func report(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default: // one is waiting already
	}
}
