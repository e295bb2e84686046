package v1alpha1

import (
	"bytes"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// The cluster.yaml of a later vipgen is accepted without the fields that this version does not
// know, whatever their content; errors in known fields are reported as usual.
func TestLaterClusterConfig(t *testing.T) {
	good := testkit.Previous(t, "rendered/vipgen/cluster.yaml")
	want, err := LoadClusterConfig("cluster.yaml", good)
	testkit.Must(t, err)
	if unknown := UnknownFields(good); unknown != nil {
		t.Errorf("unknown: %q", unknown)
	}
	later := bytes.Replace(good, []byte("spec:\n"), []byte("more: [1]\nspec:\n  later: {deep: [{er: 1}]}\n"), 1)
	later = bytes.Replace(later, []byte("    name: api\n"), []byte("    name: api\n    later: 2\n"), 1)
	got, err := LoadClusterConfig("cluster.yaml", later)
	testkit.Must(t, err)
	before, _ := want.Marshal()
	if after, err := got.Marshal(); err != nil || !bytes.Equal(before, after) {
		t.Errorf("%s, error %v", after, err)
	}
	testkit.Equal(t, []string{"more", "spec.groups[0].later", "spec.later"}, UnknownFields(later))
	for name, change := range map[string][2]string{
		"a wrong value":             {"topology: HighlyAvailable", "topology: Round"},
		"a kind of value":           {"virtualRouterID: 97", "virtualRouterID: many"},
		"a later version of all":    {"apiVersion: vipgen.io/v1alpha1", "apiVersion: vipgen.io/v2"},
		"a key that is there twice": {"  platform: baremetal\n", "  platform: baremetal\n  platform: none\n"},
		"a required one renamed":    {"loadBalancer: InCluster", "balancer: InCluster"},
	} {
		bad := strings.Replace(string(later), change[0], change[1], 1)
		if bad == string(later) {
			t.Errorf("%s: nothing changed", name)
		}
		_, err := LoadClusterConfig("cluster.yaml", []byte(bad))
		testkit.Fails(testkit.In(t, name), err, "")
	}
}
