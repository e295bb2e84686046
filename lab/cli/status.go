package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/lab/control"
)

func (a *app) statusCommand(f *labFlags) *cobra.Command {
	var o command.Format
	c := &cobra.Command{
		Use:   "status",
		Short: "Print which nodes of the lab hold the VIPs, and what is broken",
		Long: `Print which node holds each VIP, for how long, and the last failover; and of each node
its power and link, its priorities, the backends of its HAProxy, and stopped services.`,
		Example: `  sudo vipgen lab status
  sudo vipgen lab status -o json | jq '.vips[].holders'`,
		Args: command.Args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			reply, err := f.ask(context.Background(), control.Request{Do: control.DoStatus})
			if err != nil {
				return err
			}
			return command.Show(a.Out, o, "LabStatus", reply.Status, func(out io.Writer, s *control.Status) {
				v := labView{now: time.Now(), Palette: command.Colours(a.Out)}
				fmt.Fprintln(out, strings.Join(append(v.lines(s), v.legend(s)...), "\n"))
			})
		},
	}
	o.Add(c, "text", "json")
	return c
}

// shownEvents is how many of the last events the live table shows.
const shownEvents = 8

// liveTable shows the lab at a terminal, on a screen of its own, until ctx ends.
func liveTable(ctx context.Context, out *os.File, l *control.Lab, where string, events <-chan control.Event) error {
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
		if err := draw(out, l, where, last); err != nil && ctx.Err() == nil {
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
func draw(out *os.File, l *control.Lab, where string, events []control.Event) error {
	s, err := l.Status()
	if err != nil {
		return err
	}
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return err
	}
	v := labView{now: time.Now(), Palette: command.Colours(out), width: width}
	lines := append(v.lines(s), "")
	for _, e := range events {
		lines = append(lines, v.row(nil, cell{e.At.Format("15:04:05"), command.Dim}, cell{e.Text, command.Plain}))
	}
	lines = append(lines, v.legend(s)...)
	lines = lines[:min(len(lines), max(0, height-2))] // the legend goes first
	lines = append(lines, "", v.row(nil, cell{"Ctrl-C removes the lab. In another terminal: vipgen lab kill, heal, partition, stop-service, exec" + where, command.Dim}))
	_, err = fmt.Fprintf(out, "\x1b[H%s\x1b[K\x1b[J", strings.Join(lines, "\x1b[K\r\n"))
	return err
}
