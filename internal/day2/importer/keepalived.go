package importer

import (
	"net/netip"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lazy"
	"github.com/vipgen/vipgen/internal/vrrp/keepalivedconf"
)

// keepalivedConf is the content of a keepalived.conf, or of its node template.
type keepalivedConf struct {
	*keepalivedconf.Config
	file string
	// unicastIf is set where an action of the template decides on unicast peers.
	unicastIf bool
	instances []vrrpInstance
}

// vrrpInstance is one vrrp_instance. Numbers that only the node knows are 0.
type vrrpInstance struct {
	*keepalivedconf.Instance
	// cluster is the part of the name before the role; "" if only the node knows it.
	cluster string
	// role is the name's, "" if it is not one of the operator's.
	role v1alpha1.GroupRole
}

func (k *keepalivedConf) at(line int) Place { return Place{k.file, line} }

// instanceName matches the operator's names of instances: <cluster>_API, <cluster>_API_0.
var instanceName = lazy.Regexp(`^(.*)_(API|INGRESS)(?:_(?:[0-9]+|` + keepalivedconf.Hole + `))?$`)

var groupRoles = map[string]v1alpha1.GroupRole{"API": v1alpha1.GroupAPI, "INGRESS": v1alpha1.GroupIngress}

// parseKeepalived parses a keepalived.conf, rendered or a template. It is untrusted; invalid
// values are problems, which quote nothing of the file.
func parseKeepalived(file string, text []byte) (*keepalivedConf, problem.List) {
	conf, problems := keepalivedconf.Read(text)
	var list problem.List
	for _, p := range problems {
		found, expected := "something else", p.Expected
		if expected == "" {
			found, expected = p.Found, "a keepalived.conf whose blocks and quotes are closed"
		}
		list = append(list, problem.Problem{File: file, Line: p.Line, Column: 1, Severity: problem.Error, Code: p.Code, Field: p.Field, Found: found, Expected: expected})
	}
	k := &keepalivedConf{Config: conf, file: file, unicastIf: conf.Template && strings.Contains(string(text), ".EnableUnicast")}
	for n := range conf.Instances {
		i := vrrpInstance{Instance: &conf.Instances[n]}
		if m := instanceName().FindStringSubmatch(i.Name); m != nil {
			i.role = groupRoles[m[2]]
			if !keepalivedconf.HasHole(m[1]) {
				i.cluster = m[1]
			}
		}
		k.instances = append(k.instances, i)
	}
	return k, list
}

// unicastLine returns the line by which an instance is unicast; 0 if it is multicast.
func (i *vrrpInstance) unicastLine() int {
	return max(i.Block.LineOf("unicast_peer"), i.Block.LineOf("unicast_src_ip"))
}

func (k *keepalivedConf) claim(e *evidence) {
	e.confs = append(e.confs, k)
	byRole := map[v1alpha1.GroupRole][]netip.Addr{}
	first := map[v1alpha1.GroupRole]int{}
	unicast, multicast := 0, 0
	for _, i := range k.instances {
		if i.role == "" {
			continue
		}
		if i.cluster != "" && v1alpha1.ValidName(i.cluster) {
			e.name.add(i.cluster, k.at(i.Block.Line), byConf)
		}
		for _, v := range i.VIPs {
			byRole[i.role] = append(byRole[i.role], v.Addr())
			if first[i.role] == 0 {
				first[i.role] = v.Statement.Line
			}
			if !v.IsSingleIP() {
				e.vipNetworks.add(v.Masked(), k.at(v.Statement.Line), byConf)
			}
		}
		switch line := i.unicastLine(); {
		case line == 0:
			multicast = i.Block.Line
		case unicast == 0:
			unicast = line
		}
	}
	for role, list := range map[v1alpha1.GroupRole]*claims[[]netip.Addr]{v1alpha1.GroupAPI: &e.api, v1alpha1.GroupIngress: &e.ingress} {
		if len(byRole[role]) > 0 {
			list.add(byRole[role], k.at(first[role]), byConf)
		}
	}
	if k.unicastIf {
		return // decided by the pod's arguments
	}
	if unicast > 0 {
		e.mode.add(v1alpha1.ModeUnicast, k.at(unicast), byConf)
	}
	if multicast > 0 {
		e.mode.add(v1alpha1.ModeMulticast, k.at(multicast), byConf)
	}
}
