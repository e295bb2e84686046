package coredns

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/coredns/caddy/caddyfile"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/internal/lazy"
)

// Check returns a checker that starts CoreDNS with the candidate. CoreDNS has no mode for
// checks, and validity depends on its plugins, so nothing else can tell. The trial
// listens on loopback at ports chosen by the kernel, otherwise it is the candidate. It
// sends no queries and ends when its sockets are open.
func Check(bin string) daemon.Checker {
	return func(ctx context.Context, candidate string) error {
		text, err := os.ReadFile(candidate)
		if err != nil {
			return err
		}
		onTrial, err := trialOf(text)
		if err != nil {
			return err
		}
		path := candidate + ".trial"
		defer os.Remove(path)
		if err := os.WriteFile(path, onTrial, 0o644); err != nil {
			return err
		}
		out, err := try(ctx, bin, path)
		return daemon.Complaint(path, out, err)
	}
}

// try runs CoreDNS until it prints its version, once all of its servers listen, or ends.
func try(ctx context.Context, bin, corefile string) (printed []byte, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p, err := supervise.Start(supervise.Command{Path: bin, Args: []string{"-conf", corefile, "-dns.port=0"}, Stdout: w, Stderr: w})
	w.Close()
	if err != nil {
		return nil, err
	}
	stop, cancel := context.WithCancel(context.Background())
	cancel()
	defer p.Stop(stop) // at once: it has no clients
	late := context.AfterFunc(ctx, func() { p.Stop(stop) })
	defer late()
	lines := bufio.NewScanner(io.LimitReader(r, 1<<20))
	for lines.Scan() {
		if bytes.HasPrefix(lines.Bytes(), []byte("CoreDNS-")) {
			return nil, nil
		}
		printed = append(append(printed, lines.Bytes()...), '\n')
	}
	p.Stop(stop)
	if ctx.Err() != nil {
		return printed, fmt.Errorf("CoreDNS neither starts nor ends: %w", context.Cause(ctx))
	}
	return printed, errors.Join(p.Err(), errors.New("CoreDNS does not start"))
}

// portOf matches the port in a server's address, such as "tls://example.org:853".
var portOf = lazy.Regexp(`:[0-9]+$`)

// listeners are plugins with a listener of their own.
var listeners = []string{"health", "ready", "prometheus", "pprof"}

// trialOf returns the Corefile with all listeners on loopback at any port. Every server
// block gets an address of its own in 127.0.0.0/8, because blocks with one zone at
// several ports would collide otherwise. CoreDNS has a fixed order of plugins, so their
// order in the file does not matter.
func trialOf(corefile []byte) ([]byte, error) {
	blocks, err := caddyfile.Parse("Corefile", bytes.NewReader(corefile), nil)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for i, block := range blocks {
		for _, key := range block.Keys {
			fmt.Fprintf(&b, "%s:0 ", portOf().ReplaceAllString(key, ""))
		}
		fmt.Fprintf(&b, "{\nbind 127.0.%d.%d\n", i/250, i%250+1)
		for _, plugin := range slices.Sorted(maps.Keys(block.Tokens)) {
			if plugin != "bind" {
				writePlugin(&b, plugin, block.Tokens[plugin])
			}
		}
		b.WriteString("}\n")
	}
	return b.Bytes(), nil
}

// writePlugin writes all uses of a plugin in a block, line by line.
func writePlugin(b *bytes.Buffer, plugin string, tokens []caddyfile.Token) {
	var line []string
	flush := func() {
		if len(line) > 0 && line[0] == plugin && slices.Contains(listeners, plugin) {
			brace := line[len(line)-1] == "{"
			if line = []string{plugin, "127.0.0.1:0"}; brace {
				line = append(line, "{")
			}
		}
		if len(line) > 0 {
			fmt.Fprintln(b, strings.Join(line, " "))
		}
		line = nil
	}
	for i, t := range tokens {
		if i > 0 && startsLine(tokens[i-1], t) {
			flush()
		}
		line = append(line, quoted(t.Text))
	}
	flush()
}

func startsLine(before, t caddyfile.Token) bool {
	return t.File != before.File || t.Line != before.Line+strings.Count(before.Text, "\n")
}

func quoted(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\r\n\"#") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
}
