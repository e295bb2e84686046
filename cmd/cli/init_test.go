package cli

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

// The files that init writes are valid, and contain the requested settings.
func TestInitWritesValidFiles(t *testing.T) {
	none := strings.Replace(goodInstallConfig[:strings.Index(goodInstallConfig, "platform:")], "192.0.2.0/24", "192.0.2.0/24", 1) + "platform: {none: {}}\n"
	single := none + "controlPlane: {name: master, replicas: 1}\ncompute: [{name: worker, replicas: 0}]\n"
	for name, tt := range map[string]struct {
		install string
		args    []string
		has     string
	}{
		"nothing":          {goodInstallConfig, nil, "\n# spec:\n"},
		"first":            {goodInstallConfig, []string{"--openshift-version", "4.17", "--agent-image", "registry.example.com/a:1"}, "\nspec:\n  # vipgen's image in your own registry: nodes cannot pull the default.\n  images: {agent: \"registry.example.com/a:1\"}\n  # No drain and no reboot for a change of vipgen's files; OpenShift 4.17 and later.\n  manifests: {nodeDisruptionPolicy: true}\n"},
		"policy":           {goodInstallConfig, []string{"--openshift-version", "4.17"}, "\n  manifests: {nodeDisruptionPolicy: true}\n"},
		"no policy yet":    {goodInstallConfig, []string{"--openshift-version", "4.16"}, "\n  # manifests: {nodeDisruptionPolicy: true}\n"},
		"values":           {goodInstallConfig, []string{"--openshift-version", "4.18", "--profile", "classic"}, "  openshiftVersion: \"4.18\"\n"},
		"from":             {goodInstallConfig, []string{"--from", "install-config.yaml", "--openshift-version", "4.19"}, "UserManaged: External if the VIPs there"},
		"positional":       {goodInstallConfig, []string{"install-config.yaml", "--openshift-version", "4.19"}, "UserManaged: External if the VIPs there"},
		"VIPs":             {none, []string{"--from", ".", "--api-vip", "192.0.2.5", "--ingress-vip", "192.0.2.7"}, "  apiVIPs: [\"192.0.2.5\"]\n"},
		"a single node":    {single, []string{"--from", "install-config.yaml"}, "  loadBalancer: {type: \"None\"}\n"},
		"it can have VIPs": {single, []string{"--from", "install-config.yaml", "--api-vip", "192.0.2.5", "--ingress-vip", "192.0.2.7"}, "  # loadBalancer: {type: InCluster}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			lay(t, map[string]string{"install-config.yaml": tt.install})
			testkit.Equal(t, "", must(t, append([]string{"init"}, tt.args...)...))
			text := read(t, "vipgen.yaml")
			testkit.Contains(t, text, tt.has)
			must(t, "validate")
			testkit.Equal(t, text, must(t, append([]string{"init", "-o", "yaml"}, tt.args...)...))
		})
	}
}

// The commented values of the file are valid, too.
func TestInitExamplesAreValid(t *testing.T) {
	lines := strings.Split(string((&initFlags{}).vipConfig(nil)), "\n")
	for i, line := range lines {
		if key, _, found := strings.Cut(strings.TrimPrefix(line, "  # "), ":"); found && !strings.Contains(key, " ") {
			lines[i] = strings.Replace(line, "# ", "", 1)
		}
		if line == "# spec:" {
			lines[i] = "spec:"
		}
	}
	text := strings.Join(lines, "\n")
	if strings.Count(text, "\n  # ") > 11 || !strings.Contains(text, "\n  vrrp: ") {
		t.Fatalf("the examples were not found:\n%s", text)
	}
	testkit.Check(t, checkValues(render.File{Name: "vipgen.yaml", Data: []byte(text)}))
}

// Text of a flag is never more than a value, and settings that do not fit the cluster are not
// written.
func TestInitRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"--profile slow":                                  "spec.vrrp.profile: found \"slow\", expected",
		"--openshift-version 3.11":                        "--openshift-version 3.11: expected 4.12 to 5.2",
		"--api-vip a],b:[":                                "expected an IP address",
		"--from install-config.yaml --api-vip 192.0.2.9":  "spec.apiVIPs",
		"--from install-config.yaml --load-balancer None": "expected no VIP with spec.loadBalancer.type: None",
		"install-config.yaml more":                        "unexpected argument",
		"install-config.yaml --from install-config.yaml":  "cannot be used together",
	} {
		t.Chdir(t.TempDir())
		lay(t, map[string]string{"install-config.yaml": goodInstallConfig})
		exits(t, command.Input, append([]string{"init"}, strings.Fields(args)...)...).silently().reports(want)
		testkit.Equal(testkit.In(t, args), false, input.IsFile(input.VIPConfigName))
	}
}

func TestInitKeepsFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	lay(t, map[string]string{input.VIPConfigName: "mine\n"})
	exits(t, command.Input, "init").reports("--overwrite replaces it")
	testkit.Equal(t, "mine\n", read(t, input.VIPConfigName))
	must(t, "init", "--overwrite")
	testkit.Contains(t, read(t, input.VIPConfigName), v1alpha1.KindVIPConfig)
}

// The questions of init, and the effect of the answers.
func TestInitAsks(t *testing.T) {
	var asked strings.Builder
	a := &app{Reader: input.Reader{In: strings.NewReader("registry.example.com/a:1\n4.18\nclassic\n\n192.0.2.5, 2001:db8::5\n192.0.2.7\n")}, Console: command.Console{Err: &asked}}
	var f initFlags
	a.ask(&f)
	if f.agent != "registry.example.com/a:1" || f.version != "4.18" || f.profile != "classic" || strings.Join(f.apiVIPs, " ") != "192.0.2.5 2001:db8::5" || strings.Join(f.ingressVIPs, " ") != "192.0.2.7" {
		t.Errorf("%+v", f)
	}
	if strings.Count(asked.String(), ": ") < 5 {
		t.Errorf("asked %q", asked.String())
	}
	a = &app{Reader: input.Reader{In: strings.NewReader("\n\n\nNone\n")}, Console: command.Console{Err: &asked}}
	f = initFlags{}
	a.ask(&f)
	testkit.Equal(t, "None", f.loadBalancer)
}
