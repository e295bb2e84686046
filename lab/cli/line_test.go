package cli

import (
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestCommandLine(t *testing.T) {
	root := &cobra.Command{Use: "tool"}
	var got string
	c := &cobra.Command{Use: "do FILE", RunE: func(c *cobra.Command, args []string) error {
		got = commandLine(c, args)
		return nil
	}}
	c.Flags().StringSlice("names", nil, "")
	c.Flags().DurationSlice("every", nil, "")
	c.Flags().Bool("fast", false, "")
	c.Flags().Bool("safe", true, "")
	c.Flags().String("other", "unused", "")
	c.Flags().Duration("for", time.Hour, "")
	root.AddCommand(c)
	root.SetArgs([]string{"do", "it's here.yaml", "--names", "a,b", "--names", "c", "--fast", "--safe=false", "--for", "1m30s", "--every", "50ms"})
	testkit.Must(t, root.Execute())
	testkit.Equal(t, `tool do 'it'\''s here.yaml' --every 50ms --fast --for 1m30s --names a,b,c --safe=false`, got)
}
