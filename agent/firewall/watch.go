package firewall

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// watch sends after changes of the table, or when the kernel dropped notifications. Its
// socket is open when it returns; the channel is closed when ctx ends or the socket
// fails.
//
// The library's own monitor would decode every change of every table, and ends at the
// first overrun; on some nodes tables change all the time.
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
			case errors.Is(err, unix.ENOBUFS), err == nil && namesTable(messages):
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

// namesTable reports whether a message names the table: messages about tables, chains and
// rules contain its name as a zero-terminated string.
func namesTable(messages []netlink.Message) bool {
	return slices.ContainsFunc(messages, func(m netlink.Message) bool { return bytes.Contains(m.Data, []byte(TableName+"\x00")) })
}
