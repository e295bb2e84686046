package nodeip

import (
	"context"
	"fmt"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const (
	// quiet is how long nothing may change before a report: bonds, bridges and VLANs come
	// up in many steps.
	quiet = 200 * time.Millisecond
	// longest bounds the delay of a report while changes follow each other.
	longest = 2 * time.Second
)

// Watch reports possible changes of links, addresses or routes in the network namespace
// of the calling thread, on a channel of capacity 1. Many reports change nothing: compare
// a new [Snapshot]. The channel is closed some time after ctx ends.
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

// receive reports every message and every error: after an overflow the kernel drops
// messages and returns ENOBUFS.
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

// debounce merges bursts of changes into single reports.
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
