package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
)

// helps are the help texts of all commands, by their words.
func helps(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	walk((&app{}).root(), func(c *cobra.Command) {
		words := strings.Fields(c.CommandPath())[1:]
		out[c.CommandPath()] = must(t, append(words, "--help")...)
	})
	if len(out) < 35 {
		t.Fatalf("only %d commands", len(out))
	}
	return out
}

func TestHelpIsNotTooWide(t *testing.T) {
	for name, help := range helps(t) {
		for line := range strings.Lines(help) {
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > command.HelpWidth {
				t.Errorf("%s --help: %d columns: %s", name, utf8.RuneCountInString(line), line)
			}
		}
	}
}

// oldWords are private words that help is free of, and what the field says.
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
	`\ba move\b|\bmoves from\b`:                         "a switch of VRRP settings",
	`\bsomebody\b|\bnobody\b|\beverybody\b`:             "no node; all clients",
	`\bdocs/[a-z]`:                                      "a link: a binary comes without docs",
	`strconv|\(default (\[\])?\)|\d ms\b`:               "words; no default; 40ms",
}

// allowedWords are places in which an old word is a flag, or part of a link.
var allowedWords = regexp.MustCompile(`--beside( NAME| rendered)?\b|--advert-interval\b|` + regexp.QuoteMeta(command.Pages))

func TestHelpHasTheFieldsWords(t *testing.T) {
	for name, help := range helps(t) {
		text := strings.Join(strings.Fields(allowedWords.ReplaceAllString(help, "")), " ")
		for old, instead := range oldWords {
			if found := regexp.MustCompile(`(?i).{0,40}(?:` + old + `).{0,30}`).FindString(text); found != "" {
				t.Errorf("%s --help: %q: write %s", name, found, instead)
			}
		}
	}
}

// The names of values in help are those of the field.
func TestPlaceholders(t *testing.T) {
	placeholder := regexp.MustCompile(`(?m)^ +(?:-\w, )?--[\w-]+ (form|how|how many|long|one|way|time|times|long|kinds)\b  `)
	for name, help := range helps(t) {
		if m := placeholder.FindString(help); m != "" {
			t.Errorf("%s --help: %s", name, m)
		}
	}
}

// Next to each `oc apply` of MachineConfigs stands what reboots.
func TestHelpSaysWhatReboots(t *testing.T) {
	for name, help := range helps(t) {
		if strings.Contains(help, "oc apply") && (!strings.Contains(help, "reboot") || strings.Contains(help, "machineconfigs") && !strings.Contains(help, "vipgen diff")) {
			t.Errorf("%s --help: 'oc apply' without a word about reboots and 'vipgen diff'", name)
		}
	}
}

// Help links to pages that exist.
func TestHelpLinks(t *testing.T) {
	links := 0
	for name, help := range helps(t) {
		for _, m := range regexp.MustCompile(regexp.QuoteMeta(command.Pages)+`([\w.-]+)`).FindAllStringSubmatch(help, -1) {
			links++
			if _, err := os.Stat("../../docs/" + m[1]); err != nil {
				t.Errorf("%s --help: %v", name, err)
			}
		}
	}
	if links == 0 {
		t.Error("no links")
	}
}

func TestInputFlagsHaveAGroup(t *testing.T) {
	help := must(t, "render", "--help")
	_, input, found := strings.Cut(help, "\n"+inputflags.Title+":\n")
	if !found || !strings.Contains(input, "--agent-config file") || strings.Contains(input, "--install-dir") {
		t.Errorf("render --help:\n%s", help)
	}
}
