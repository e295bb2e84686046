package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/vipgen/vipgen/lab/control"
)

func (a *app) labStatusCommand(f *labFlags) *cobra.Command {
	var o outputFlag
	c := &cobra.Command{
		Use:   "status",
		Short: "Print who holds what in the lab, and what is broken",
		Long: `Print which node holds each virtual IP, for how long, and the last failover; and of
each node its power and link, its priorities, the backends of its HAProxy, and what
was stopped.`,
		Example: `  sudo vipgen lab status
  sudo vipgen lab status -o json | jq '.vips[].holders'`,
		Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			reply, err := f.ask(context.Background(), control.Request{Do: control.DoStatus})
			if err != nil {
				return err
			}
			if o == "json" {
				return a.printJSON(reply.Status)
			}
			v := labView{now: time.Now(), colour: terminal(a.out) && os.Getenv("NO_COLOR") == ""}
			_, err = fmt.Fprintln(a.out, strings.Join(append(v.lines(reply.Status), v.legend(reply.Status)...), "\n"))
			return err
		},
	}
	o.add(c, "text", "json")
	return c
}

// shownEvents is how many of the last events the live table shows.
const shownEvents = 8

// liveTable shows the lab at a terminal, on a screen of its own, until ctx ends.
func liveTable(ctx context.Context, out *os.File, l *control.Lab, events <-chan control.Event) error {
	const (
		enter = "\x1b[?1049h\x1b[?25l" // the other screen, without the cursor
		leave = "\x1b[?25h\x1b[?1049l"
	)
	if _, err := out.WriteString(enter); err != nil {
		return err
	}
	defer out.WriteString(leave)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var last []control.Event
	for {
		if err := draw(out, l, last); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case e := <-events:
			last = append(last, e)
		case <-tick.C:
		}
		for range len(events) {
			last = append(last, <-events)
		}
		last = last[max(0, len(last)-shownEvents):]
	}
}

// draw paints the whole screen at once, so that nothing flickers.
func draw(out *os.File, l *control.Lab, events []control.Event) error {
	s, err := l.Status()
	if err != nil {
		return err
	}
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return err
	}
	v := labView{now: time.Now(), colour: os.Getenv("NO_COLOR") == "", width: width}
	lines := append(v.lines(s), "")
	for _, e := range events {
		lines = append(lines, v.row(nil, cell{e.At.Format("15:04:05"), dim}, cell{e.Text, plain}))
	}
	lines = append(lines, v.legend(s)...)
	lines = lines[:min(len(lines), max(0, height-2))] // the legend goes first
	lines = append(lines, "", v.row(nil, cell{"Ctrl-C removes the lab. In another terminal: vipgen lab kill, heal, partition, stop-service, exec", dim}))
	_, err = fmt.Fprintf(out, "\x1b[H%s\x1b[K\x1b[J", strings.Join(lines, "\x1b[K\r\n"))
	return err
}
