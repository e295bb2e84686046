package importer

import (
	"cmp"
	"fmt"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp/keepalivedconf"
	"github.com/vipgen/vipgen/render"
)

// loseVRRP lists the settings in the keepalived.conf files that separate nodes, and instances
// that are not the operator's. `vipgen diff` compares everything else.
func (i *importer) loseVRRP(cluster string) {
	for _, k := range i.confs {
		for n := range k.instances {
			if v := &k.instances[n]; v.role != "" {
				i.losePassword(k, v, cluster, words[v.role]+" VIP")
			} else {
				i.lose(k.at(v.Block.Line), "vrrp_instance "+shown(v.Name)+", with "+count(len(v.VIPs), "VIP"),
					"nothing: more API VIPs go into spec.additionalAPIVIPs of vipgen.yaml, those of another ingress controller into spec.ingress, others into a keepalived of your own")
			}
		}
	}
}

// words name groups in reports.
var words = map[v1alpha1.GroupRole]string{v1alpha1.GroupAPI: "API", v1alpha1.GroupIngress: "ingress"}

// losePassword compares the part that is in an advert, without showing it.
func (i *importer) losePassword(k *keepalivedConf, v *vrrpInstance, cluster, vips string) {
	line := func(word string) int { return v.Block.LineOf("authentication", word) }
	at := k.at(cmp.Or(line("auth_pass"), line("auth_type"), v.Block.LineOf("authentication"), v.Block.Line))
	switch {
	case v.AuthType != "" && v.AuthType != "PASS":
		i.loseApart(at, vips+": authentication of another type than PASS", "PASS, as OpenShift's own")
	case v.Version == 3:
		// VRRPv3 has none.
	case v.AuthType == "":
		i.loseApart(at, vips+": no authentication", "PASS, as OpenShift's own")
	case keepalivedconf.HasHole(v.Password):
	case v.Password != render.Password(cluster, v.role):
		i.loseApart(at, vips+": its own password", "the one that OpenShift derives from the cluster's name")
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
