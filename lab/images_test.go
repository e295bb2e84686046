package lab

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// program is the head of a Linux program with one segment of the given type.
func program(t *testing.T, segment elf.ProgType) string {
	t.Helper()
	head := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	}
	var data bytes.Buffer
	for _, part := range []any{head, elf.Prog64{Type: uint32(segment)}} {
		testkit.Must(t, binary.Write(&data, binary.LittleEndian, part))
	}
	path := filepath.Join(t.TempDir(), "vipgen-agent")
	testkit.WriteFile(t, path, data.Bytes())
	return path
}

// The kernel's "no such file or directory" for a missing loader would appear in the first pod
// of a lab, and explain nothing.
func TestAgentRunsAlone(t *testing.T) {
	script := filepath.Join(t.TempDir(), "vipgen-agent")
	testkit.WriteFile(t, script, []byte("#!/bin/sh\n"))
	for path, want := range map[string]string{
		program(t, elf.PT_LOAD):   "",
		program(t, elf.PT_INTERP): "'CGO_ENABLED=0 go build ./cmd/vipgen-agent'",
		script:                    "is not a program of Linux",
	} {
		err := runsAlone(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
