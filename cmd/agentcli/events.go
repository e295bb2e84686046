package agentcli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/events"
)

func (a *app) eventsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "events",
		Short: "Print the record of what happened to this node's VIPs",
		Long: `Print the record that the job keepalived keeps in /etc/keepalived: JSON, an event a line,
the oldest first. 'vipgen doctor' reads it. Images of keepalived may have no other program
that prints a file.`,
		Example: "  vipgen-agent events > master-0-vipgen-events.jsonl",
		Args:    command.Args(0, 0),
		RunE:    func(*cobra.Command, []string) error { return a.events() },
	}
}

func (a *app) events() error {
	found := false
	for _, name := range []string{events.OlderName, events.FileName} {
		f, err := os.Open(filepath.Join(a.below("/etc/keepalived"), name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		found = true
		_, err = io.Copy(a.out, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("no record in %s: the job keepalived has not run on this node", a.below("/etc/keepalived"))
	}
	return nil
}
