// Package manual writes man pages and shell completions of the programs.
package manual

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/cmd/agentcli"
	"github.com/vipgen/vipgen/cmd/cli"
	"github.com/vipgen/vipgen/internal/image"
	"github.com/vipgen/vipgen/internal/image/man"
)

// Files returns the man pages of all commands, below /man, and vipgen's completions, below
// /completions.
func Files(ctx context.Context, s image.Source) ([]image.File, error) {
	pages, err := labPages(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, others := range []map[string][]byte{man.Pages(agentcli.Command(), s.Version), man.Pages(cli.Command(), s.Version), man.Pages(cli.LiveCommand(), s.Version)} {
		for name, data := range others {
			if pages[name] == nil { // vipgen's own page of the lab has less
				pages[name] = data
			}
		}
	}
	var out []image.File
	add := func(path string, data []byte) {
		out = append(out, image.File{Path: path, Mode: fs.FileMode(0o644), Data: data})
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		add("/man/man1/"+name, pages[name])
	}
	// kubectl completes a plugin by a program with this name.
	out = append(out, image.File{Path: "/completions/kubectl_complete-vipgen", Mode: fs.FileMode(0o755), Data: []byte("#!/bin/sh\nexec kubectl-vipgen __complete \"$@\"\n")})
	// Under the names that shells search.
	for shell, name := range map[string]string{"bash": "vipgen.bash", "zsh": "_vipgen", "fish": "vipgen.fish", "powershell": "vipgen.ps1"} {
		var script, complaint bytes.Buffer
		if code := cli.Run([]string{"completion", shell}, strings.NewReader(""), &script, &complaint); code != 0 {
			return nil, fmt.Errorf("vipgen completion %s: exit code %d: %s", shell, code, &complaint)
		}
		add("/completions/"+name, script.Bytes())
	}
	return out, nil
}

// labPages returns the man pages of the lab, which its own module writes.
func labPages(ctx context.Context, s image.Source) (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "vipgen-manual-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := s.RunLab(ctx, "./cmd/manual", s.Version, dir); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.1"))
	pages := map[string][]byte{}
	for _, file := range files {
		if pages[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	return pages, err
}
