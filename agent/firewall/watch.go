package firewall

import (
	"bytes"
	"context"
	"errors"
	"os"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// watch sends whenever the kernel says that the table changed, or that it could
// not say what changed. It opens its socket before it returns, and ends with
// ctx; then, and when the socket fails, it closes the channel.
//
// The library's own monitor would decode every change of every table, ends at
// the first overrun, and there are nodes where tables change all the time.
func watch(ctx context.Context) (<-chan struct{}, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, err
	}
	if err := conn.JoinGroup(unix.NFNLGRP_NFTABLES); err != nil {
		conn.Close()
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	changed := make(chan struct{}, 1)
	go func() {
		defer close(changed)
		defer conn.Close()
		defer stop()
		for ctx.Err() == nil {
			messages, err := conn.Receive()
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded):
				return
			case errors.Is(err, unix.ENOBUFS), err == nil && concern(messages):
				select {
				case changed <- struct{}{}:
				default: // one is waiting already
				}
			case err != nil:
				return
			}
		}
	}()
	return changed, nil
}

// concern reports whether a message names the table: those about tables, chains
// and rules hold its name as a string that ends in a zero byte.
func concern(messages []netlink.Message) bool {
	for _, message := range messages {
		if bytes.Contains(message.Data, []byte(TableName+"\x00")) {
			return true
		}
	}
	return false
}
