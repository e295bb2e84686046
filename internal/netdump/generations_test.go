package netdump

import (
	"os/exec"
	"runtime"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestGeneration(t *testing.T) {
	const newGen = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWGEN
	for name, tt := range map[string]struct {
		kind netlink.HeaderType
		data []byte
		want uint32
	}{
		"the generation":             {newGen, []byte{0, 0, 0, 0, 8, 0, 1, 0, 0, 0, 1, 2}, 0x102},
		"after the name of somebody": {newGen, []byte{0, 0, 0, 0, 8, 0, 3, 0, 'n', 'f', 't', 0, 8, 0, 1, 0, 0, 0, 0, 7}, 7},
		"another message":            {unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWTABLE, []byte{0, 0, 0, 0, 8, 0, 1, 0, 0, 0, 1, 2}, 0},
		"no generation":              {newGen, []byte{0, 0, 0, 0}, 0},
		"no header":                  {newGen, nil, 0},
		"cut off":                    {newGen, []byte{0, 0, 0, 0, 8, 0, 1, 0, 0, 0}, 0},
		"a shorter number":           {newGen, []byte{0, 0, 0, 0, 6, 0, 1, 0, 0, 7, 0, 0}, 0},
	} {
		testkit.Equal(testkit.In(t, name), tt.want, generation(netlink.Message{Header: netlink.Header{Type: tt.kind}, Data: tt.data}))
	}
}

// Each change of any table is a new generation; reading is none.
func TestCurrent(t *testing.T) {
	testkit.Privileged(t)
	nft := testkit.Program(t, "nft")
	// The thread ends with the goroutine, and the namespace with it.
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Errorf("a namespace needs root: %v", err)
			return
		}
		var g Generations
		defer g.Close()
		before, err := g.Current()
		if err != nil || before == 0 {
			t.Errorf("generation %d, error %v", before, err)
			return
		}
		for _, command := range []string{
			"", "add table inet a", "", "add chain inet a b", "add rule inet a b counter", "", "add table ip other", "delete table inet a", "flush ruleset",
		} {
			if command != "" {
				if out, err := exec.Command(nft, command).CombinedOutput(); err != nil {
					t.Errorf("nft %s: %v\n%s", command, err, out)
					return
				}
			}
			now, err := g.Current()
			if err != nil || (now != before) != (command != "") {
				t.Errorf("after %q: generation %d, before %d, error %v", command, now, before, err)
			}
			before = now
		}
		// A failed connection is replaced.
		g.conn.Close()
		if _, err := g.Current(); err == nil {
			t.Error("no error from a connection that is closed")
		}
		if now, err := g.Current(); err != nil || now != before {
			t.Errorf("generation %d, before %d, error %v", now, before, err)
		}
	}()
	<-done
}
