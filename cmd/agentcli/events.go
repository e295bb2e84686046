package agentcli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/events"
)

func (a *app) eventsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "events",
		Short: "Print the record of what happened to this node's VIPs",
		Long: `Print the records that the jobs keepalived and bgp keep in /etc/keepalived and
/var/lib/vipgen/bgp: JSON, an event a line, the oldest of each first. 'vipgen doctor' reads
them. Each pod has the record of its job. Images of keepalived may have no other program
that prints a file.`,
		Example: "  vipgen-agent events > master-0-vipgen-events.jsonl",
		Args:    command.Args(0, 0),
		RunE:    func(*cobra.Command, []string) error { return a.events() },
	}
}

// Folders with records.
var (
	keepalivedDir = filepath.Dir(v1alpha1.KeepalivedConf)
	bgpDir        = filepath.Dir(v1alpha1.BGPKept)
)

func (a *app) events() error {
	found := false
	for _, path := range []string{
		filepath.Join(keepalivedDir, events.OlderName), filepath.Join(keepalivedDir, events.FileName),
		filepath.Join(bgpDir, events.OlderName), filepath.Join(bgpDir, events.FileName),
	} {
		f, err := os.Open(a.below(path))
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
		return fmt.Errorf("no record in %s or %s: neither the job keepalived nor bgp has run on this node", a.below(keepalivedDir), a.below(bgpDir))
	}
	return nil
}
