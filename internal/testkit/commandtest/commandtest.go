// Package commandtest checks the help and the documentation of command trees.
package commandtest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Program is a program under test.
type Program struct {
	// Root returns its command tree.
	Root func() *cobra.Command
	// Run runs a command line.
	Run func(args []string, in io.Reader, out, errOut io.Writer) int
	// Docs is the directory of its pages.
	Docs string
}

// Check checks help and documentation of all commands.
func (p Program) Check(t *testing.T) {
	helps := p.CheckHelp(t)
	t.Run("Links", func(t *testing.T) { p.checkLinks(t, helps) })
	t.Run("Documented", p.documented)
}

// CheckHelp checks the help of all commands and returns it, by path.
func (p Program) CheckHelp(t *testing.T) map[string]string {
	helps := p.helps(t)
	t.Run("Complete", func(t *testing.T) { p.complete(t, helps) })
	t.Run("Width", func(t *testing.T) { checkWidth(t, helps) })
	t.Run("Words", func(t *testing.T) { checkWords(t, helps) })
	t.Run("Reboots", func(t *testing.T) { checkReboots(t, helps) })
	return helps
}

// Walk visits a command and all below it.
func Walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, child := range c.Commands() {
		Walk(child, visit)
	}
}

// words returns the path of a command below the program.
func words(c *cobra.Command) []string {
	return strings.Fields(strings.TrimPrefix(c.CommandPath(), c.Root().CommandPath()))
}

// helps returns the help texts of all commands, by path.
func (p Program) helps(t *testing.T) map[string]string {
	t.Helper()
	helps := map[string]string{}
	Walk(p.Root(), func(c *cobra.Command) {
		var out, errOut bytes.Buffer
		if code := p.Run(append(words(c), "--help"), strings.NewReader(""), &out, &errOut); code != command.OK {
			t.Fatalf("%s --help: exit code %d\n%s", c.CommandPath(), code, &errOut)
		}
		helps[c.CommandPath()] = out.String()
	})
	if len(helps) < 10 {
		t.Fatalf("only %d commands", len(helps))
	}
	return helps
}

// complete checks that help describes each command, with an example, and the value of each
// flag.
func (p Program) complete(t *testing.T, helps map[string]string) {
	Walk(p.Root(), func(c *cobra.Command) {
		generated := c.Name() == "help" || len(words(c)) > 0 && words(c)[0] == "completion"
		if c.Short == "" || strings.HasSuffix(c.Short, ".") && !generated || c.Example == "" && !generated {
			t.Errorf("%s: example %q, short %q", c.CommandPath(), c.Example, c.Short)
		}
		if help := helps[c.CommandPath()]; !generated && (!strings.Contains(help, "Examples:\n") || !strings.Contains(help, "Usage:\n")) {
			t.Errorf("%s --help:\n%s", c.CommandPath(), help)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			value, _ := pflag.UnquoteUsage(f)
			if f.Usage == "" || f.Value.Type() != "bool" && (value == "" || !strings.Contains(f.Usage, "`")) {
				t.Errorf("%s --%s: help without a name for its value", c.CommandPath(), f.Name)
			}
		})
	})
}

func checkWidth(t *testing.T, helps map[string]string) {
	for name, help := range helps {
		for line := range strings.Lines(help) {
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > command.HelpWidth {
				t.Errorf("%s --help: %d columns: %s", name, utf8.RuneCountInString(line), line)
			}
		}
	}
}

// oldWords maps words that help must not use to the field's.
var oldWords = map[string]string{
	`\badverts?\b`:                                      "advertisement",
	`\bwa(y|ys) (of electing|to an? )`:                  "VRRP settings; endpoint",
	`\bsa(y|ys) who\b|\bwho (holds?|can hold|elect)`:    "which node",
	`\btwo holders\b`:                                   "split brain",
	`\bwhole again\b|\btakes? the power\b`:              "undo all faults; power off",
	`\bof (its|one's|their|your|a cluster's) own\b`:     "own",
	`\bwhat of it is wrong\b`:                           "what is wrong with it",
	`\bbeside\b(?: rendered| NAME)?`:                    "next to",
	`\bin place of\b`:                                   "instead of",
	`\bthan nothing\b|\bfor nothing\b|\bneedless`:       "positive; spurious",
	`\bgoes on\b|\bno longer there\b`:                   "continues; gone",
	`\bso many\b|\bhow many\b|\ball is well\b|\banew\b`: "at most; no problem; again",
	`\bload balancers? outside\b`:                       "external load balancer",
	`\ba move\b|\bmoves from\b|\ba switch of\b`:         "a migration",
	`\bsomebody\b|\bnobody\b|\beverybody\b`:             "no node; all clients",
	`\bdocs/[a-z]`:                                      "a link: a binary comes without docs",
	`strconv|\(default (\[\])?\)|\d ms\b`:               "words; no default; 40ms",
}

// allowedWords are uses of an old word as a flag, or as part of a link.
var allowedWords = regexp.MustCompile(`--beside( NAME| rendered)?\b|--advert-interval\b|` + regexp.QuoteMeta(command.Pages))

// placeholder matches value names that are not the field's.
var placeholder = regexp.MustCompile(`(?m)^ +(?:-\w, )?--[\w-]+ (form|how|how many|long|one|way|time|times|long|kinds)\b  `)

func checkWords(t *testing.T, helps map[string]string) {
	expressions := map[string]*regexp.Regexp{}
	for old := range oldWords {
		expressions[old] = regexp.MustCompile(`(?i:` + old + `)`)
	}
	for name, help := range helps {
		if m := placeholder.FindString(help); m != "" {
			t.Errorf("%s --help: %s", name, m)
		}
		text := strings.Join(strings.Fields(allowedWords.ReplaceAllString(help, "")), " ")
		for old, instead := range oldWords {
			if at := expressions[old].FindStringIndex(text); at != nil {
				t.Errorf("%s --help: %q: write %s", name, text[max(at[0]-40, 0):min(at[1]+30, len(text))], instead)
			}
		}
	}
}

// checkReboots requires what reboots next to each `oc apply` of MachineConfigs.
func checkReboots(t *testing.T, helps map[string]string) {
	for name, help := range helps {
		if strings.Contains(help, "oc apply") && (!strings.Contains(help, "reboot") || strings.Contains(help, "machineconfigs") && !strings.Contains(help, "vipgen diff")) {
			t.Errorf("%s --help: 'oc apply' without a word about reboots and 'vipgen diff'", name)
		}
	}
}

func (p Program) checkLinks(t *testing.T, helps map[string]string) {
	links := 0
	for name, help := range helps {
		for _, m := range regexp.MustCompile(regexp.QuoteMeta(command.Pages)+`([\w.-]+)`).FindAllStringSubmatch(help, -1) {
			links++
			if _, err := os.Stat(filepath.Join(p.Docs, m[1])); err != nil {
				t.Errorf("%s --help: %v", name, err)
			}
		}
	}
	if links == 0 {
		t.Error("no links")
	}
}

// documented checks that commands.md names every runnable command; flags are in help only.
func (p Program) documented(t *testing.T) {
	page := string(testkit.ReadFile(t, filepath.Join(p.Docs, "commands.md")))
	Walk(p.Root(), func(c *cobra.Command) {
		if !c.Runnable() || !c.HasParent() || c.Hidden {
			return
		}
		name := c.Name()
		if c.Parent().Name() == "completion" {
			name = "`" + name + "`"
		}
		if !strings.Contains(page, name) {
			t.Errorf("commands.md does not mention %s", c.CommandPath())
		}
	})
}

// Line is a command line of vipgen in a page; Live is set for `kubectl vipgen` and `oc vipgen`.
type Line struct {
	Page  string
	Live  bool
	Words []string
}

// Lines returns the command lines of vipgen in shell blocks of files, also after sudo and in a
// pipe; of files that are no pages, all.
func Lines(t *testing.T, patterns ...string) (lines []Line) {
	t.Helper()
	invocation := regexp.MustCompile(`(?m)(?:^|[ |(])(kubectl |oc |)(?:\$repo/bin/|\./cmd/|\./|bin/)?vipgen ((?:[^|>;&#)\n\\]|\\\n)*)`)
	for _, pattern := range patterns {
		pages, err := filepath.Glob(pattern)
		if err != nil || len(pages) == 0 {
			t.Fatal(pattern, err)
		}
		for _, page := range pages {
			text := string(testkit.ReadFile(t, page))
			if filepath.Ext(page) == ".md" {
				text = strings.Join(ShellBlocks(text), "\n")
			}
			text = regexp.MustCompile(`(?m)^\s*(#|go build ).*$`).ReplaceAllString(text, "")
			for _, m := range invocation.FindAllStringSubmatch(text, -1) {
				lines = append(lines, Line{page, m[1] != "", strings.Fields(strings.NewReplacer("\\\n", " ", `"`, "", "'", "").Replace(m[2]))})
			}
		}
	}
	return lines
}

// ShellBlocks returns the shell blocks of a page.
func ShellBlocks(page string) (blocks []string) {
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, block[1])
	}
	return blocks
}

// Exists checks that a command line's command and flags exist.
func (p Program) Exists(t *testing.T, l Line) {
	t.Helper()
	c, rest, err := p.Root().Find(l.Words)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil && c.HasSubCommands() && len(l.Words) > 0 && !strings.HasPrefix(l.Words[0], "-") {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err != nil {
		t.Errorf("%s: %s %s: %v", l.Page, p.Root().CommandPath(), strings.Join(l.Words, " "), err)
	}
}
