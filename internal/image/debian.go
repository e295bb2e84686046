package image

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/package-url/packageurl-go"
)

// debianPrograms adds programs of installed packages, with the shared libraries that the loader
// finds for them and the loader, and returns their packages. It adds no shell, no
// configuration, no user database: what else a program needs at run time, a test shows by
// running it.
func debianPrograms(r *Rootfs, programs ...string) ([]Component, error) {
	files := slices.Clone(programs)
	for _, program := range programs {
		list, err := libraries(program)
		if err != nil {
			return nil, err
		}
		files = append(files, list...)
	}
	return debianFiles(r, files...)
}

// debianFiles adds files of installed packages and returns the packages. Each file must be
// unchanged from its package, so that the same versions of packages give the same image on
// every machine.
func debianFiles(r *Rootfs, files ...string) ([]Component, error) {
	d := debian{rootfs: r, packages: map[string]*debianPackage{}}
	slices.Sort(files)
	for _, f := range slices.Compact(files) {
		if err := d.add(f); err != nil {
			return nil, err
		}
	}
	var out []Component
	for _, name := range slices.Sorted(maps.Keys(d.packages)) {
		out = append(out, d.packages[name].Component)
	}
	return out, nil
}

// libraries returns the shared libraries of a program and its loader, as listed by the loader
// itself. A static program has none.
func libraries(program string) ([]string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	defer f.Close()
	var loader string
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name := make([]byte, p.Filesz)
			if _, err := p.ReadAt(name, 0); err != nil {
				return nil, fmt.Errorf("%s: %w", program, err)
			}
			loader = string(bytes.TrimRight(name, "\x00"))
		}
	}
	if loader == "" {
		return nil, nil // static
	}
	out, err := output(loader, "--list", program)
	if err != nil {
		return nil, err
	}
	files := []string{loader}
	for line := range strings.Lines(out) { // libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)
		name, found, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if !ok {
			continue // the kernel's own, or the loader
		}
		file, _, _ := strings.Cut(found, " (")
		if !path.IsAbs(file) {
			return nil, fmt.Errorf("%s needs %s, which is not found", program, name)
		}
		files = append(files, file)
	}
	return files, nil
}

// output runs a program and returns its output, without LD_* variables of this process, which
// change what the loader finds.
func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(failed.Stderr))
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(out), nil
}

// debian collects files with their packages.
type debian struct {
	rootfs   *Rootfs
	packages map[string]*debianPackage // by dpkg's names, such as libc6:amd64
}

type debianPackage struct {
	Component
	sums map[string]string // MD5, by path
}

// add adds a file under the name by which the program, the loader or the kernel opens it, with
// every symbolic link on the way.
func (d *debian) add(name string) error {
	for range 20 {
		next, err := d.step(name)
		if err != nil || next == "" {
			return err
		}
		name = next
	}
	return fmt.Errorf("%s: too many symbolic links", name)
}

// step adds the first symbolic link in a path, and returns its target; or adds the file itself.
func (d *debian) step(name string) (next string, err error) {
	parts := strings.Split(strings.TrimPrefix(path.Clean(name), "/"), "/")
	for n := range parts {
		at := "/" + path.Join(parts[:n+1]...)
		info, err := os.Lstat(at)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		target, err := os.Readlink(at)
		if err != nil {
			return "", err
		}
		if err := d.rootfs.Add(File{Path: at, Mode: fs.ModeSymlink | 0o777, Link: target}); err != nil {
			return "", err
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(at), target)
		}
		return path.Join(append([]string{target}, parts[n+1:]...)...), nil
	}
	return "", d.addFile(path.Clean(name))
}

func (d *debian) addFile(file string) error {
	owner, err := d.owner(file)
	if err != nil {
		return err
	}
	if err := owner.check(file); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if err := d.rootfs.Add(File{Path: file, Mode: info.Mode().Perm(), Source: file}); err != nil {
		return err
	}
	if !slices.Contains(owner.Files, file) {
		owner.Files = append(owner.Files, file)
	}
	return nil
}

// unmerged returns the names that a file may have in a package's list: packages may list /lib
// for today's /usr/lib (UsrMerge).
func unmerged(file string) []string {
	return []string{file, strings.TrimPrefix(file, "/usr")}
}

// owner finds the package of a file, and adds it with its licence.
func (d *debian) owner(file string) (*debianPackage, error) {
	var name string
	var failed error
	for _, f := range unmerged(file) {
		out, err := output("dpkg-query", "--search", f)
		failed = errors.Join(failed, err)
		if err == nil {
			name, _, _ = strings.Cut(out, ": ")
			break
		}
	}
	if name == "" {
		return nil, fmt.Errorf("%s is not from a Debian package: %w", file, failed)
	}
	if known, ok := d.packages[name]; ok {
		return known, nil
	}
	p, err := newDebianPackage(name)
	if err != nil {
		return nil, err
	}
	d.packages[name] = p
	return p, d.addCopyright(&p.Component)
}

func newDebianPackage(name string) (*debianPackage, error) {
	out, err := output("dpkg-query", "--show", "--showformat", "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}", name)
	if err != nil {
		return nil, err
	}
	f := strings.Split(out, "\t")
	if len(f) != 5 {
		return nil, fmt.Errorf("dpkg-query reports for package %s: %q", name, out)
	}
	purl := packageurl.NewPackageURL(packageurl.TypeDebian, "debian", f[0], f[1], packageurl.QualifiersFromMap(map[string]string{
		"arch": f[2], "upstream": f[3] + "@" + f[4],
	}), "")
	p := &debianPackage{Component: Component{PURL: purl.String(), Name: f[0], Version: f[1]}, sums: map[string]string{}}
	sums, err := output("dpkg-query", "--control-show", name, "md5sums")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(sums) {
		if sum, file, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			p.sums["/"+file] = sum
		}
	}
	return p, nil
}

// check compares a file with its checksum in the package.
func (p *debianPackage) check(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, f := range unmerged(file) {
		want, ok := p.sums[f]
		if !ok {
			continue
		}
		if got := fmt.Sprintf("%x", md5.Sum(data)); got != want {
			return fmt.Errorf("%s is not as its package has it: run `apt-get install --reinstall %s`", file, p.Name)
		}
		return nil
	}
	return fmt.Errorf("package %s has no checksum of %s", p.Name, file)
}

// addCopyright adds the file with a package's licences, and records their names.
func (d *debian) addCopyright(c *Component) error {
	name := path.Join("/usr/share/doc", c.Name, "copyright")
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(real)
	if err != nil {
		return err
	}
	if names := debianLicenses(text); len(names) > 0 {
		c.LicenseComment = "Debian's names of the licences in the source package: " + strings.Join(names, ", ")
	}
	return d.rootfs.Add(File{Path: name, Mode: 0o644, Data: text})
}

// debianLicenses returns the licences in a copyright file of Debian's machine-readable format
// (DEP 5); nil for another format. The names are similar to SPDX identifiers, not equal.
func debianLicenses(text []byte) []string {
	if !bytes.HasPrefix(text, []byte("Format: ")) {
		return nil
	}
	names := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "License:"); ok && strings.TrimSpace(name) != "" {
			names[strings.TrimSpace(name)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
