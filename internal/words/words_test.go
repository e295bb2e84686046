// Package words holds the project to the words of its field: those that readers know
// from Kubernetes, keepalived, HAProxy and networking.
package words

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// phrase is a private word or phrase, and what the field says.
type phrase struct {
	old *regexp.Regexp
	// needles are texts of which each match has one, in lower case. Most texts have none, and
	// need not be matched.
	needles []string
	instead string
}

func phrases(list [][2]string) (out []phrase) {
	for _, p := range list {
		// Also over the end of a line.
		old := regexp.MustCompile(`(?i)` + strings.ReplaceAll(p[0], " ", `\s+`))
		parsed, err := syntax.Parse(old.String(), syntax.Perl)
		if err != nil {
			panic(err)
		}
		out = append(out, phrase{old, needles(parsed), p[1]})
	}
	return out
}

// needles returns texts of which each match of a pattern has one, or none if it may have others:
// of parts in a row, those of the part whose shortest one is the longest.
func needles(re *syntax.Regexp) (out []string) {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return needles(re.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			more := needles(sub)
			if more == nil {
				return nil
			}
			out = append(out, more...)
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if other := needles(sub); shortest(other) > shortest(out) {
				out = other
			}
		}
	}
	return out
}

func shortest(texts []string) int {
	if len(texts) == 0 {
		return 0
	}
	return len(slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) }))
}

// in returns the places of the phrase in a text, of which lower is the text in lower case.
func (p phrase) in(text, lower string) [][]int {
	has := func(needle string) bool { return strings.Contains(lower, needle) }
	if len(p.needles) > 0 && !slices.ContainsFunc(p.needles, has) {
		return nil
	}
	return p.old.FindAllStringIndex(text, -1)
}

// everywhere are phrases that no comment, string or template has.
var everywhere = phrases([][2]string{
	{`\bways? of electing\b`, "VRRP settings"},
	{`\bcoordinated (move|switch)\b|\bmoves? to other VRRP settings\b`, "migration, migrate"},
	{`\btwo[- _]?holders`, "split brain"},
	{`\bcomes? along\b`, "lagging peer"},
	{`\bword back\b`, "withdraw"},
	{`\bwhole again\b|\btakes? the power\b`, "undo all faults; power off"},
	{`\btak(e|es|ing) (its|their) word\b`, "withdraw"},
	{`\b(a|the) power from\b`, "power off"},
	{`\bkeeps? nobody out\b`, "gives no security"},
	{`\bmove(s|d)? for nothing\b`, "spurious failover"},
	{`\b(has|have) to know of\b`, "settings that VIPs need"},
	{`\bthat takes UserManaged\b`, "requires loadBalancer.type: UserManaged"},
})

// inComments are phrases that no comment in Go has, of tests either.
var inComments = phrases([][2]string{
	{`\b(some|any|no|every)body\b|\bwhoever\b|\bthose who\b`, "the node, another host, no program"},
	{`\bgo(es|ing)? on\b`, "continue"},
	{`\bhears?\b`, "receive"},
	{`\b(is|are|was|were|be) told\b`, "is notified, gets"},
	{`\bsays? (so|that|what|which|how|who)\b`, "reports, names"},
	{`\bis looked\b|\blooks again\b`, "polls, reads"},
	{`\bfor ever\b`, "forever"},
	{`\ball the same\b`, "nevertheless"},
	{`\bwho (holds?|has|reads?|sends?|elects?)\b`, "the holder, the reader, the sender"},
	{`\b(stands?|stood) still\b`, "is paused, suspended, hangs"},
})

// logged are phrases that logs and the help of metrics do not have either.
var logged = phrases([][2]string{
	{`\b(some|no|every)body\b|\bwhoever\b`, "another host, no node"},
	{`\bgoes on\b`, "continues"},
	{`\bof (its|their|one's) own\b`, "own"},
	{`\bbeside\b`, "next to"},
	{`\badverts?\b`, "advertisement"},
	{`\bwho (holds?|elects?)\b|\belecting\b`, "VRRP election, holder"},
	{`\bfor ever\b`, "forever"},
})

// printed are phrases that no string of the programs has either: output, errors, problems, help.
var printed = phrases([][2]string{
	{`\b(some|any|no|every)body\b|\bwhoever\b`, "the node, another host, no program"},
	{`\bgo(es|ing)? on\b`, "continue, resume"},
	{`\bhears?\b`, "receive"},
	{`\b(is|are|was|were|be) told\b`, "is notified, gets a signal"},
	{`\b(stands?|stood) still\b`, "is paused, suspended, hangs"},
	{`\b(as it comes|all is well|in good order|says? goodbye|look after|does not stand up)\b`, "by default, healthy, gracefully, announces its stop, operate, invalid"},
	{`\b(said|says?) (so|otherwise|nothing)\b`, "announces, has another, sends nothing"},
})

// onPages are phrases that no page has either, outside of code.
var onPages = phrases([][2]string{
	{`\badverts?\b`, "advertisement"},
	{`\b(some|no|every)body\b|\bwhoever\b`, "the node, no client, everything that"},
	{`\bgo(es)? on\b`, "continue"},
	{`\bhears?\b|\bheard\b`, "receive"},
	{`\b(is|are|was|were) told\b`, "is notified, gets a signal"},
	{`\b(stands?|stood) still\b`, "is paused, suspended, hangs"},
	{`\bof (its|their|your|one's) own([^ \w]|$| and | on )`, "own"},
	{`\bbeside\b`, "next to, compared with"},
	{`\b(arrival|strange|displaced|tenure|haste|calm|stray)\b`, "the field's word"},
	{`\b(pulse|beat|troubles?|urgent)\b`, "the field's word"},
	{`\bfor ever\b`, "forever"},
	{`[.] (?-i:Who|What|One that)\b[^.?:|]*[.]`, "the node, the file, a node that"},
})

// code on a page: commands, output, names.
var code = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")

// prose is a page without code, with the same lines.
func prose(page string) string {
	return code.ReplaceAllStringFunc(page, func(c string) string { return "`" + strings.Repeat("\n", strings.Count(c, "\n")) + "`" })
}

// identifiers are words that no name in Go is made of, in lower case.
var identifiers = map[string]string{
	"arrival": "join delay", "displaced": "address mismatch", "displacement": "address mismatch", "tenure": "bootstrap lifetime",
	"haste": "scheduling", "urge": "scheduling", "greet": "prime neighbours",
	"strange": "unknown to the holder", "electing": "VRRP settings",
	"ear": "advertisement listener", "heard": "received", "hearing": "recorder", "stray": "lagging peer", "calm": "cooldown", "pulse": "watchdog", "trouble": "log transitions",
}

// packages are names that say nothing of what is in a package.
var packages = []string{"alive", "beat", "pulse", "trouble", "urgent", "util", "utils", "common", "helpers"}

// conventional are the folders with Go code: its doc comments and names are also checked.
var conventional = []string{"agent/", "api/", "assets/", "cmd/", "docs/", "examples/", "golden/", "ignition/", "internal/", "lab/", "render/", "templates/"}

// docForms are beginnings of doc comments, after the name, that Go does not have: a function
// returns, reports whether, writes; a type is, holds, represents.
var docForms = regexp.MustCompile(`^(says|tells|gives|notes|looks|hears|sees|takes in|` +
	`has what|finds out|has it|(is|are) (those|what|who|whether|when|where|why|for how|by how|of|that of)|is (how|the one)( |$)|are the ones|is part of)\b`)

// docNouns are forms of docForms that describe a duration, a number or a reason.
var docNouns = regexp.MustCompile(`^is (how (long|often|far|much)|why|when|where)\b`)

// logForms are beginnings of log messages that name neither an event nor a state.
var logForms = phrases([][2]string{{`^(can|ignoring|going on|nobody|what|who|whether|where|it) `, "the event or the state, its subject first: cannot X, X again"}})

// verbs are first words of functions that do not name what these do.
var verbs = map[string]string{
	"look": "poll, update", "say": "log, notify", "tell": "publish, notify", "told": "a noun", "note": "record, add",
	"hear": "receive", "hears": "receives", "see": "observe", "of": "what is selected", "come": "the event",
	"says": "reports", "said": "logged, printed", "tells": "publishes", "knows": "supports", "take": "store, accept",
}

// gerunds are nouns among the names of types that end in -ing.
var gerunds = []string{
	"binding", "drawing", "fencing", "finding", "holding", "monitoring", "pending", "ring", "scheduling", "setting", "spelling", "timing",
}

// root of the repository, from here.
const root = "../.."

// texts matches the files that people read besides Go: templates, scripts, units, Makefile, docs.
var texts = regexp.MustCompile(`(^|/)(Makefile|Containerfile|setup|run)$|\.(tmpl|sh|service|timer|path|conf|tf|html|md)$`)

func TestWords(t *testing.T) {
	seen := map[string]int{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case d.IsDir() && slices.Contains([]string{".git", ".cache", "bin", "testdata", "expected", "words"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case strings.HasSuffix(name, ".go"):
			seen["go"]++
			checkGo(t, path, name)
		case texts.MatchString(name):
			seen["texts"]++
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			check(t, name, 1, string(data), everywhere)
			if strings.HasSuffix(name, ".md") {
				seen["pages"]++
				check(t, name, 1, prose(string(data)), onPages)
			}
		}
		return nil
	})
	testkit.Must(t, err)
	if seen["go"] < 500 || seen["texts"] < 20 || seen["pages"] < 40 {
		t.Errorf("checked too few files: %v", seen)
	}
}

// check finds phrases in a text that begins at a line.
func check(t *testing.T, name string, line int, text string, list []phrase) {
	t.Helper()
	lower := strings.ToLower(text)
	for _, p := range list {
		for _, at := range p.in(text, lower) {
			t.Errorf("%s:%d: %q: write %s", name, line+strings.Count(text[:at[0]], "\n"), text[at[0]:at[1]], p.instead)
		}
	}
}

// checkGo finds phrases in comments and strings, which are logs, metrics and help,
// and for words in names that are declared.
func checkGo(t *testing.T, path, name string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return
	}
	line := func(p token.Pos) int { return set.Position(p).Line }
	if slices.Contains(packages, file.Name.Name) {
		t.Errorf("%s: package %s does not name its content", name, file.Name.Name)
	}
	if slices.ContainsFunc(conventional, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
		checkNames(t, set, name, file)
	}
	for _, c := range file.Comments {
		check(t, name, line(c.Pos()), c.Text(), everywhere)
		check(t, name, line(c.Pos()), c.Text(), inComments)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			check(t, name, line(n.Pos()), text(n), everywhere)
			if !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "internal/tools/") && filepath.Base(name) != "commandtest.go" { // it has a list like this
				check(t, name, line(n.Pos()), text(n), printed)
			}
		case *ast.CallExpr:
			if skips(n) && name != "internal/testkit/kind.go" {
				t.Errorf("%s:%d: declare a kind of internal/testkit, or call CannotRun", name, line(n.Pos()))
			}
			if logs(n) && !strings.HasSuffix(name, "_test.go") {
				for _, a := range n.Args {
					check(t, name, line(a.Pos()), text(a), logged)
				}
			}
		case *ast.Ident:
			for _, part := range parts(n.Name) {
				if instead := identifiers[part]; instead != "" {
					t.Errorf("%s:%d: %s: write %s", name, line(n.Pos()), n.Name, instead)
				}
			}
		}
		return true
	})
}

// checkNames checks the doc comments and the names of declarations, exported or not.
func checkNames(t *testing.T, set *token.FileSet, name string, file *ast.File) {
	t.Helper()
	doc := func(id *ast.Ident, doc *ast.CommentGroup) {
		text, _ := strings.CutPrefix(doc.Text(), id.Name+" ")
		if form := docForms.FindString(text); form != "" && !docNouns.MatchString(text) {
			t.Errorf("%s:%d: %s %s: begin as Go does: returns, reports whether, is, holds", name, set.Position(id.Pos()).Line, id.Name, form)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			doc(n.Name, n.Doc)
			if instead := verbs[parts(n.Name.Name)[0]]; instead != "" {
				t.Errorf("%s:%d: %s: write %s", name, set.Position(n.Pos()).Line, n.Name.Name, instead)
			}
		case *ast.GenDecl:
			for _, s := range n.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					doc(s.Name, n.Doc)
					words := parts(s.Name.Name)
					if last := words[len(words)-1]; strings.HasSuffix(last, "ing") && !slices.Contains(gerunds, last) {
						t.Errorf("%s:%d: type %s: name it by owner or content", name, set.Position(s.Pos()).Line, s.Name.Name)
					}
				}
				if s, ok := s.(*ast.ValueSpec); ok && len(n.Specs) == 1 {
					doc(s.Names[0], n.Doc)
				}
			}
		case *ast.ValueSpec:
			doc(n.Names[0], n.Doc)
		case *ast.Field:
			if len(n.Names) > 0 {
				doc(n.Names[0], n.Doc)
			}
		case *ast.CallExpr:
			for _, a := range n.Args {
				if logs(n) && !strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(name, "/metrics.go") && !strings.HasPrefix(text(a), "Whether ") {
					check(t, name, set.Position(a.Pos()).Line, text(a), logForms)
				}
			}
		}
		return true
	})
}

// text returns the value of a string.
func text(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		text, _ := strconv.Unquote(lit.Value)
		return text
	}
	return ""
}

// logs reports whether a call logs or declares a metric.
func logs(c *ast.CallExpr) bool {
	f, ok := c.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Info", "Warn", "Error", "Debug", "log", "Gauge", "Counter", "Histogram"}, f.Sel.Name)
}

// skips reports whether a call skips a test.
func skips(c *ast.CallExpr) bool {
	f, ok := c.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, f.Sel.Name)
}

var hump = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)

// parts are the words of a name, in lower case.
func parts(name string) (out []string) {
	for _, p := range hump.FindAllString(name, -1) {
		out = append(out, strings.ToLower(p))
	}
	return out
}
