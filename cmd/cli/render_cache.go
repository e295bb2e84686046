package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/render"
)

// memory knows which input was rendered into which tree, so that a cluster whose
// input and whose tree are both as they were is not rendered again. It rests on
// the same input giving the same bytes: it has digests of the input, of vipgen
// itself, and of every file of the tree, which are all looked at each time.
//
// It is a folder of small files in the user's cache directory; VIPGEN_CACHE names
// another, "off" none. What goes wrong with it makes a run slower, never wrong.
type memory struct {
	dir  string
	seed []byte // digest of vipgen and of what the command line says
	bufs sync.Pool
}

// memoryVersion is part of all digests: the form of entries, below.
const memoryVersion = "3"

// openMemory is nil, which knows nothing, where there can be none.
func openMemory(f *renderFlags) *memory {
	dir := os.Getenv("VIPGEN_CACHE")
	if dir == "off" || len(f.roles) > 0 {
		return nil
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil
		}
		dir = filepath.Join(user, "vipgen")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %q %q %q %q %t %t", memoryVersion, f.formats, f.os, f.version, f.release, f.kustomization, f.overwrite)
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	for _, name := range []string{self, f.release} {
		if name == "" {
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			return nil
		}
		_, err = io.Copy(h, file)
		file.Close()
		if err != nil {
			return nil
		}
	}
	return &memory{dir: dir, seed: h.Sum(nil)}
}

// sum is the digest of all that the tree of a cluster depends on.
func (m *memory) sum(s render.Sources) (out [sha256.Size]byte) {
	if m == nil {
		return out
	}
	h := sha256.New()
	h.Write(m.seed)
	for _, f := range []*render.File{&s.InstallConfig, s.AgentConfig, s.VIPConfig, s.ClusterIngress} {
		if f == nil {
			fmt.Fprintf(h, "none ")
			continue
		}
		fmt.Fprintf(h, "%d ", len(f.Data))
		h.Write(f.Data)
	}
	fmt.Fprintf(h, "%q %d ", s.Object, len(s.Companions))
	for _, f := range s.Companions {
		fmt.Fprintf(h, "%d ", len(f.Data))
		h.Write(f.Data)
	}
	defaults := s.Defaults.Sum()
	h.Write(defaults[:])
	h.Sum(out[:0])
	return out
}

// entry is where a tree is remembered.
func (m *memory) entry(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(abs))
	return filepath.Join(m.dir, hex.EncodeToString(sum[:16]))
}

// keep remembers that a tree was made of an input: a line with the digest of the
// input, and one for each file.
func (m *memory) keep(dir string, input [sha256.Size]byte, files []render.OutputFile) {
	if m == nil {
		return
	}
	name := m.entry(dir)
	if name == "" {
		return
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	files = append(files[:len(files):len(files)], render.OutputFile{Path: tree.Record, Data: []byte(strings.Join(paths, "\n") + "\n")})
	var b bytes.Buffer
	fmt.Fprintf(&b, "%x\n", input)
	for _, f := range files {
		fmt.Fprintf(&b, "%x %s\n", sha256.Sum256(f.Data), f.Path)
	}
	// An entry that is not whole does not match.
	_ = os.WriteFile(name, b.Bytes(), 0o600)
}

// unchanged counts the files of a tree that was made of this input and is still
// as it was made; 0 where that is not known.
func (m *memory) unchanged(dir string, input [sha256.Size]byte) int {
	if m == nil || dir == "" {
		return 0
	}
	name := m.entry(dir)
	if name == "" {
		return 0
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	head, rest, ok := strings.Cut(string(text), "\n")
	if !ok || head != hex.EncodeToString(input[:]) || !strings.HasSuffix(rest, " "+tree.Record+"\n") {
		return 0
	}
	files := 0
	for line := range strings.Lines(rest) {
		sum, path, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok || !filepath.IsLocal(path) || m.digest(filepath.Join(dir, path)) != sum {
			return 0
		}
		files++
	}
	return files - 1 // the record is none
}

// digest is that of a file, "" where it cannot be read.
func (m *memory) digest(name string) string {
	buf, _ := m.bufs.Get().(*[]byte)
	if buf == nil {
		buf = new(make([]byte, 256<<10))
	}
	defer m.bufs.Put(buf)
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	for {
		n, err := f.Read(*buf)
		h.Write((*buf)[:n])
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil))
		}
		if err != nil {
			return ""
		}
	}
}
