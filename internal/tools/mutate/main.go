// Command mutate changes the source at random places and reports which changes no test notices:
//
//	go run ./internal/tools/mutate [-n 60] [-seed 1] [-match REGEXP] [-also PACKAGES] PACKAGES
//
// Its mutants are all in one build of the tests of PACKAGES: each stands in the source beside
// what it changes, and VIPGEN_MUTANT selects one by its number, so that a mutant costs a run of
// the tests that reach it and no build; each test runs alone first, to record what it reaches.
// It runs the tests of `make unit` in PACKAGES, and then those of the packages in -also. A mutant
// counts as killed if its tests take five times as long as without it.
//
// equivalents.txt lists mutants that change nothing that a test could notice, and why. The exit
// status is 1 if fewer than 90 % of the others are killed.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	n := flag.Int("n", 60, "number of mutants")
	seed := flag.Uint64("seed", 1, "seed of their choice")
	match := flag.String("match", "", "choose among those whose names, as equivalents.txt has them, match")
	also := flag.String("also", "", "more packages whose tests run, separated by spaces")
	flag.Parse()
	tooFew, err := run(*n, *seed, *match, strings.Fields(*also), flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if tooFew {
		os.Exit(1)
	}
}

// goPackage is a package as go list prints it.
type goPackage struct {
	Dir, ImportPath           string
	GoFiles                   []string
	TestGoFiles, XTestGoFiles []string
}

func (p goPackage) hasTests() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

func listPackages(patterns []string) (out []goPackage, err error) {
	data, err := exec.Command("go", append([]string{"list", "-json=Dir,ImportPath,GoFiles,TestGoFiles,XTestGoFiles"}, patterns...)...).Output()
	for d := json.NewDecoder(bytes.NewReader(data)); err == nil && d.More(); {
		var p goPackage
		if err = d.Decode(&p); err == nil {
			out = append(out, p)
		}
	}
	return out, err
}

func run(n int, seed uint64, match string, also, patterns []string) (tooFew bool, err error) {
	matching, err := regexp.Compile(match)
	if err != nil {
		return false, err
	}
	packages, err := listPackages(patterns)
	if err != nil {
		return false, fmt.Errorf("go list: %w", err)
	}
	var files []*file
	for _, p := range packages {
		for _, name := range p.GoFiles {
			f, err := parse(filepath.Join(p.Dir, name))
			if err != nil {
				return false, err
			}
			files = append(files, f)
		}
	}
	all := shuffled(files, seed)
	equivalent, err := readEquivalents(equivalents)
	if err != nil {
		return false, err
	}
	all = slices.DeleteFunc(all, func(m *mutant) bool { return equivalent[m.name()] || !matching.MatchString(m.name()) })
	chosen := all[:min(n, len(all))]
	for i, m := range chosen {
		m.id = i + 1
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	if len(also) > 0 {
		more, err := listPackages(also)
		if err != nil {
			return false, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, more...)
	}
	packages = slices.DeleteFunc(packages, func(p goPackage) bool { return !p.hasTests() })
	b := &built{dir: dir, tested: packages, files: files, mutants: chosen}
	if err := b.compile(); err != nil {
		return false, err
	}
	if err := b.baseline(); err != nil {
		return false, err
	}
	killed, of := 0, 0
	for _, m := range chosen {
		if m.invalid {
			continue
		}
		of++
		verdict := b.try(m)
		if verdict != "" {
			killed++
		}
		fmt.Printf("%-9s line %d, %s%s\n", map[bool]string{true: "killed", false: "SURVIVED"}[verdict != ""], m.line, m.name(), cmp.Or(verdict, m.reachedBy()))
	}
	fmt.Printf("%d of %d mutants killed (%d places, %d did not compile)\n", killed, of, len(all), len(chosen)-of)
	return killed*10 < of*9, nil
}

// shuffled returns all mutants in an order of the seed. It hangs on their names alone, so that
// a change of the source elsewhere leaves the choice as it is.
func shuffled(files []*file, seed uint64) (all []*mutant) {
	rank, named := map[*mutant]uint64{}, map[string]int{}
	for _, f := range files {
		for _, m := range f.mutants {
			named[m.name()]++
			sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", seed, named[m.name()], m.name()))
			rank[m] = binary.BigEndian.Uint64(sum[:])
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(x, y *mutant) int { return cmp.Compare(rank[x], rank[y]) })
	return all
}

//go:embed equivalents.txt
var equivalents string

// readEquivalents reads the list: a mutant's name, then two spaces and a reason.
func readEquivalents(list string) (map[string]bool, error) {
	out := map[string]bool{}
	for line := range strings.Lines(list) {
		name, reason, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if name == "" || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("equivalents.txt: %q: a name, two spaces and a reason are needed", line)
		}
		out[name] = true
	}
	return out, nil
}

// built is all mutants, compiled into the tests of each package.
type built struct {
	dir     string
	tested  []goPackage
	files   []*file
	mutants []*mutant // that are chosen
}

// reach is the tests of a package that reach a mutant, and how long they take without it.
type reach struct {
	of    goPackage
	tests []string
	took  time.Duration
}

// helper is the file that is added to each package.
const helper = `package %s

import (
	"os"
	"strconv"
	"sync"
)

var mutantSeen sync.Map

var mutantActive, _ = strconv.Atoi(os.Getenv("VIPGEN_MUTANT"))

var mutantReached = os.Getenv("VIPGEN_MUTANT_REACHED")

func mutantOn(id int) bool {
	if _, seen := mutantSeen.LoadOrStore(id, true); mutantReached != "" && !seen {
		os.WriteFile(mutantReached+"/"+strconv.Itoa(id), nil, 0o644)
	}
	return id == mutantActive
}

func mutantPick[T any](id int, a, b T) T {
	if mutantOn(id) {
		return b
	}
	return a
}
`

var (
	compileError = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: (missing return)?`)
	numbered     = regexp.MustCompile(`mutant(?:On|Pick)\((\d+)`)
	breaks       = regexp.MustCompile(`mutantOn\((\d+)\) { break`) // after which a loop may end
)

// compile builds the tests, without those mutants that are no Go, which it finds by errors.
func (b *built) compile() error {
	for {
		overlay := map[string]string{}
		texts := map[string]string{}
		write := func(path, text string) error {
			to := filepath.Join(b.dir, strconv.Itoa(len(overlay))+".go")
			overlay[path], texts[to] = to, text
			return os.WriteFile(to, []byte(text), 0o644)
		}
		for _, f := range b.files {
			if text := f.text(); text != string(f.source) {
				if err := write(f.path, text); err != nil {
					return err
				}
				if helped := filepath.Join(filepath.Dir(f.path), "mutant.go"); overlay[helped] == "" {
					if err := write(helped, fmt.Sprintf(helper, f.name)); err != nil {
						return err
					}
				}
			}
		}
		data, err := json.Marshal(map[string]any{"Replace": overlay})
		if err != nil {
			return err
		}
		config := filepath.Join(b.dir, "overlay.json")
		if err := os.WriteFile(config, data, 0o644); err != nil {
			return err
		}
		args := []string{"test", "-c", "-vet=off", "-p=1", "-ldflags=-s -w", "-overlay", config, "-o", b.dir + "/tests/"}
		for _, p := range b.tested {
			args = append(args, p.ImportPath)
		}
		out, err := exec.Command("go", args...).CombinedOutput()
		if err == nil {
			return nil
		}
		found := false
		for _, m := range compileError.FindAllStringSubmatch(string(out), -1) {
			pattern := numbered
			if m[3] != "" {
				pattern = breaks
			}
			path, _ := filepath.Abs(m[1])
			line, _ := strconv.Atoi(m[2])
			found = b.invalidate(strings.Split(texts[path], "\n"), line, pattern) || found
		}
		if !found {
			return fmt.Errorf("go test -c: %w\n%s", err, out)
		}
	}
}

// invalidate leaves out the mutants of a pattern in the line of an error, or the nearest before it.
func (b *built) invalidate(lines []string, line int, pattern *regexp.Regexp) bool {
	for line = min(line, len(lines)); line > 0; line-- {
		if ids := pattern.FindAllStringSubmatch(lines[line-1], -1); len(ids) > 0 {
			for _, id := range ids {
				n, _ := strconv.Atoi(id[1])
				b.mutants[n-1].invalid = true
			}
			return true
		}
	}
	return false
}

// test runs tests of a package, and returns their output if they fail.
func (b *built) test(p goPackage, tests []string, bound time.Duration, env ...string) (failure string, took time.Duration) {
	cmd := exec.Command("timeout", "-k", "5", strconv.Itoa(int(bound.Seconds())), b.program(p), "-test.failfast", "-test.run=^("+strings.Join(tests, "|")+")$")
	cmd.Dir, cmd.Env = p.Dir, append(append(os.Environ(), "VIPGEN_TESTS=unit"), env...)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return cmp.Or(string(out), err.Error()), time.Since(began)
	}
	return "", time.Since(began)
}

// program returns the tests of a package; names are as go test -c makes them.
func (b *built) program(p goPackage) string {
	return filepath.Join(b.dir, "tests", filepath.Base(p.ImportPath)+".test")
}

// baseline runs each test alone; all must pass. It records which tests reach which mutant.
func (b *built) baseline() error {
	for _, p := range b.tested {
		list := exec.Command(b.program(p), "-test.list=^(Test|Fuzz|Example)")
		list.Dir = p.Dir
		names, err := list.Output()
		if err != nil {
			return fmt.Errorf("list the tests of %s: %w", p.ImportPath, err)
		}
		began := time.Now()
		for _, name := range strings.Fields(string(names)) {
			if err := b.record(p, name); err != nil {
				return err
			}
		}
		fmt.Printf("%s: %v\n", p.ImportPath, time.Since(began).Round(time.Millisecond))
	}
	return nil
}

// record runs a test without a mutant and records which mutants it reaches.
func (b *built) record(p goPackage, test string) error {
	reached, err := os.MkdirTemp(b.dir, "reached-")
	if err != nil {
		return err
	}
	failure, took := b.test(p, []string{test}, 10*time.Minute, "VIPGEN_MUTANT_REACHED="+reached)
	if failure != "" {
		return fmt.Errorf("%s of %s fails without a mutant:\n%s", test, p.ImportPath, failure)
	}
	entries, err := os.ReadDir(reached)
	for _, e := range entries {
		id, _ := strconv.Atoi(e.Name())
		m := b.mutants[id-1]
		if len(m.reached) == 0 || m.reached[len(m.reached)-1].of.ImportPath != p.ImportPath {
			m.reached = append(m.reached, reach{of: p})
		}
		r := &m.reached[len(m.reached)-1]
		r.tests, r.took = append(r.tests, test), r.took+took
	}
	return err
}

// try returns the package whose tests kill a mutant, or "". The mutant's own package is first.
func (b *built) try(m *mutant) (killer string) {
	slices.SortStableFunc(m.reached, func(x, y reach) int {
		if own := filepath.Dir(m.file.path); x.of.Dir == own || y.of.Dir == own {
			return map[bool]int{true: -1, false: 1}[x.of.Dir == own]
		}
		return cmp.Compare(x.took, y.took)
	})
	for _, r := range m.reached {
		bound := (10*time.Second + 5*r.took).Truncate(time.Second)
		if failure, took := b.test(r.of, r.tests, bound, "VIPGEN_MUTANT="+strconv.Itoa(m.id)); failure != "" {
			return ", by " + r.of.ImportPath + map[bool]string{true: ", which takes too long"}[took >= bound]
		}
	}
	return ""
}
