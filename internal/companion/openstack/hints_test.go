package openstack

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/vipgen/vipgen/internal/testkit"
)

// names could be syntax of a shell or of HCL.
var names = []string{
	"demo-master-0", "a b", "it's", `"quoted"`, `back\slash`, `\`, `'`, `''`, `'"'"'`, "$(touch x)", "`touch x`", "${x}", "%{if x}", "$${x}", "%%{x}",
	"$", "%", "${", "%{", "}", "#", "//", "/*", ";", "&", "|", ">", "*", "?", "[a]", "~", "!!", "a=b", "é", "日本", "<<EOT", "\t", "a\nb", "\r", "$'x'", "{{ .x }}",
}

// bash and HCL read a quoted name as the name itself.
func checkName(t *testing.T, name string) {
	t.Helper()
	out, err := exec.Command("bash", "-c", "printf %s "+Name(name).Shell()).Output()
	if err != nil || string(out) != name {
		t.Errorf("bash reads %s as %q, want %q (%v)", Name(name).Shell(), out, name, err)
	}
	expr, diags := hclsyntax.ParseExpression([]byte(Name(name).HCL()), "x.tf", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("HCL does not read %s: %v", Name(name).HCL(), diags)
	}
	value, diags := expr.Value(nil)
	if diags.HasErrors() || value.AsString() != name {
		t.Errorf("HCL reads %s as %q, want %q (%v)", Name(name).HCL(), value.AsString(), name, diags)
	}
}

func FuzzName(f *testing.F) {
	for _, name := range names {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		// Unprintable text is refused earlier, and HCL normalises other text to NFC.
		if strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' }) {
			return
		}
		checkName(t, name)
	})
}

func example(port Name) *Plan {
	vip := netip.MustParseAddr("192.0.2.5")
	return &Plan{hints: hints{Cluster: "demo.example.com", Network: port, Subnets: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		Ports: []hintPort{{port, []netip.Addr{vip}}},
		VIPs: []hintVIP{{Group: "api", Port: port, Addresses: []hintAddress{{vip, netip.MustParsePrefix("192.0.2.0/24")}},
			FloatingIP: netip.MustParseAddr("203.0.113.5"), Fixed: vip}}}}
}

// Whatever the name of a port, the configuration has the same blocks, and the name is a value
// in it.
func TestNamesInTerraform(t *testing.T) {
	var want []string
	for i, name := range names {
		if strings.ContainsAny(name, "\r\n\t") {
			continue // refused earlier
		}
		text, err := example(Name(name)).Terraform()
		testkit.Must(t, err)
		file, diags := hclparse.NewParser().ParseHCL(text, "x.tf")
		if diags.HasErrors() {
			t.Fatalf("%q: %v\n%s", name, diags, text)
		}
		var blocks []string
		for _, b := range file.Body.(*hclsyntax.Body).Blocks {
			blocks = append(blocks, strings.Join(append([]string{b.Type}, b.Labels...), " "))
			if v, ok := b.Body.Attributes["ports"]; ok && b.Type == "locals" {
				value, diags := v.Expr.Value(nil)
				if diags.HasErrors() || !value.Type().HasAttribute(name) || value.LengthInt() != 1 {
					t.Errorf("%q: ports are %#v, %v", name, value, diags)
				}
			}
		}
		if i == 0 {
			want = blocks
		}
		testkit.Equal(testkit.In(t, name), want, blocks)
	}
}
