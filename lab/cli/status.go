package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/lab/control"
)

func (a *app) statusCommand(f *labFlags) *cobra.Command {
	var o command.Format
	var watch bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Print which nodes of the lab hold the VIPs, and what is broken",
		Long: `Print which node holds each VIP, since when, and the last failover; and of each node
its power and link, its priorities, the backends of its HAProxy, and stopped services.
With VIPs by BGP, print which nodes the routers of the racks send packets to, and the
machines that are no nodes.

With --watch again every second, until Ctrl-C: at a terminal on one screen, else one
after the other, with an empty line between.`,
		Example: `  sudo vipgen lab status
  sudo vipgen lab status --watch
  sudo vipgen lab status -o json | jq '.vips[].holders'`,
		Args: command.Args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			ask := func(ctx context.Context) (*control.Status, error) {
				reply, err := f.ask(ctx, control.Request{Do: control.DoStatus})
				if err != nil {
					return nil, err
				}
				return reply.Status, nil
			}
			if watch {
				ctx, stop := interruptible()
				defer stop()
				tick := time.NewTicker(time.Second)
				defer tick.Stop()
				return a.watchStatus(ctx, ask, tick.C, o)
			}
			s, err := ask(context.Background())
			if err != nil {
				return err
			}
			return a.showStatus(s, o)
		},
	}
	o.Add(c, "text", "json")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "print it again every second, until Ctrl-C")
	return c
}

func (a *app) showStatus(s *control.Status, o command.Format) error {
	return command.Show(a.Out, o, "LabStatus", s, func(out io.Writer, s *control.Status) {
		v := labView{now: time.Now(), Palette: command.Colours(a.Out)}
		fmt.Fprintln(out, strings.Join(append(v.lines(s), v.legend(s)...), "\n"))
	})
}

// watchStatus prints the lab's status with each tick until ctx or the lab ends.
func (a *app) watchStatus(ctx context.Context, ask func(context.Context) (*control.Status, error), ticks <-chan time.Time, o command.Format) error {
	show := func(s *control.Status, first bool) error {
		if !first && o != "json" {
			fmt.Fprintln(a.Out)
		}
		return a.showStatus(s, o)
	}
	if screen, ok := a.Out.(*os.File); ok && o != "json" && redrawn(a.Out) {
		leave, err := fullScreen(screen)
		if err != nil {
			return err
		}
		defer leave()
		show = func(s *control.Status, _ bool) error {
			width, height, err := term.GetSize(int(screen.Fd()))
			if err != nil {
				return err
			}
			v := labView{now: time.Now(), Palette: command.Colours(screen), width: width}
			return paint(screen, append(v.lines(s), v.legend(s)...), v.row(nil, cell{"Ctrl-C ends the display; the lab keeps running", command.Dim}), height)
		}
	}
	for first := true; ; first = false {
		s, err := ask(ctx)
		if err == nil {
			err = show(s, first)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
		}
	}
}

// shownEvents is the number of events that the live table shows.
const shownEvents = 8

// liveTable shows the lab on the alternate screen of a terminal until ctx ends.
func liveTable(ctx context.Context, out *os.File, l *control.Lab, where string, events <-chan control.Event) error {
	leave, err := fullScreen(out)
	if err != nil {
		return err
	}
	defer leave()
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

// redrawn reports whether a stream is a terminal that can be redrawn.
func redrawn(stream any) bool { return command.Terminal(stream) && os.Getenv("TERM") != "dumb" }

// fullScreen switches a terminal to its alternate screen, without the cursor; leave switches back.
func fullScreen(out io.Writer) (leave func(), err error) {
	_, err = io.WriteString(out, "\x1b[?1049h\x1b[?25l")
	return func() { _, _ = io.WriteString(out, "\x1b[?25h\x1b[?1049l") }, err
}

// paint draws a whole screen in one write, so that nothing flickers. If the lines do not fit above
// the foot, the last ones are cut.
func paint(out io.Writer, lines []string, foot string, height int) error {
	lines = append(slices.Clip(lines[:min(len(lines), max(0, height-2))]), "", foot)
	_, err := fmt.Fprintf(out, "\x1b[H%s\x1b[K\x1b[J", strings.Join(lines, "\x1b[K\r\n"))
	return err
}

// draw paints the lab with its last events.
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
	foot := v.row(nil, cell{"Ctrl-C removes the lab. In another terminal: vipgen lab kill, heal, partition, stop-service, exec" + where, command.Dim})
	return paint(out, append(lines, v.legend(s)...), foot, height)
}
