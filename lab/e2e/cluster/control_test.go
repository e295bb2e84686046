package cluster

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/authority"
)

// The control plane consists of static pods of real programs. On a real cluster its operators
// write them; here the tests do, which have the addresses of all nodes.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
)

var controlPrograms = []string{etcd, apiServer, controllerManager}

// controlNamespace is the namespace of their mirror pods.
const controlNamespace = "kube-system"

// controlDir is a node's directory for certificates.
const controlDir = "/etc/kubernetes/control-plane"

// certificateLifetime is how long certificates of kubelets are valid. Kubelet requests another
// one after 70 to 90 % of it.
const certificateLifetime = "10m"

func programImage(name string) string { return "localhost/" + name + ":1" }

// prepareControlPlane writes the certificates of the node's part of the control plane.
func (n *node) prepareControlPlane() {
	c := n.cluster
	c.t.Helper()
	pairs := map[string]authority.KeyPair{"accounts": c.accounts, "signer": c.ca.Pair()}
	errs := []error{n.WriteMode(controlDir+"/ca.crt", c.ca.CertPEM, 0o600)}
	add := func(name string, pair authority.KeyPair, err error) {
		pairs[name] = pair
		errs = append(errs, err)
	}
	names := []string{n.Name, "localhost", "127.0.0.1", n.addr.String()}
	pair, err := c.ca.Peer(names...)
	add(etcd, pair, err)
	pair, err = c.ca.Serving(append(names, "api."+domain, "api-int."+domain, "kubernetes.default.svc", "10.0.0.1", apiVIP.String())...)
	add(apiServer, pair, err)
	pair, err = c.ca.Client("kube-apiserver", "system:masters")
	add("client", pair, err)
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		errs = append(errs, n.WriteMode(controlDir+"/"+name+".crt", pairs[name].Cert, 0o600), n.WriteMode(controlDir+"/"+name+".key", pairs[name].Key, 0o600))
	}
	errs = append(errs, n.WriteMode(controlDir+"/controller-manager.kubeconfig", c.kubeconfig("localhost", "system:kube-controller-manager"), 0o600))
	c.must(errors.Join(errs...))
}

func inControl(name string) string { return controlDir + "/" + name }

// static is a pod of the control plane.
type static struct {
	name  string // of pod, container and program
	args  []string
	data  string // a directory of the node that it writes to
	ready corev1.HTTPGetAction
	cpu   string // requested, as OpenShift does
}

// runStatic writes the manifest of a control-plane pod for the node's kubelet.
func (n *node) runStatic(s static) {
	n.cluster.t.Helper()
	pod := s.pod()
	data, err := yaml.Marshal(pod)
	n.cluster.must(err)
	n.control[s.name] = pod
	n.cluster.must(n.Write(v1alpha1.ManifestDir+"/"+s.name+".yaml", data))
}

// endStatic removes a pod of the control plane, which kubelet ends gracefully.
func (n *node) endStatic(name string) {
	n.cluster.t.Helper()
	delete(n.control, name)
	n.cluster.must(os.Remove(n.Path(v1alpha1.ManifestDir + "/" + name + ".yaml")))
}

func (s static) pod() *corev1.Pod {
	user, grace, directory := int64(0), int64(45), corev1.HostPathDirectoryOrCreate
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: controlNamespace},
		Spec: corev1.PodSpec{
			HostNetwork: true, PriorityClassName: "system-node-critical", TerminationGracePeriodSeconds: &grace,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: s.name, Image: programImage(s.name), Command: append([]string{"/usr/bin/" + s.name}, s.args...),
				SecurityContext: &corev1.SecurityContext{RunAsUser: &user},
				Resources:       corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(s.cpu)}},
				ReadinessProbe: &corev1.Probe{
					ProbeHandler: corev1.ProbeHandler{HTTPGet: &s.ready}, PeriodSeconds: 2, TimeoutSeconds: 5,
				},
			}},
		},
	}
	for name, dir := range map[string]string{"certificates": controlDir, "data": s.data} {
		if dir == "" {
			continue
		}
		c := &pod.Spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: dir, ReadOnly: dir == controlDir})
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: dir, Type: &directory},
		}})
	}
	return pod
}

// startAPI starts an API server on the node that uses these members of etcd.
func (n *node) startAPI(members []*node) {
	var servers []string
	for _, m := range members {
		servers = append(servers, m.etcdURL(2379))
	}
	n.runStatic(static{
		name: apiServer, cpu: "265m",
		args: []string{
			"--secure-port=6443", "--bind-address=0.0.0.0", "--advertise-address=" + n.addr.String(),
			"--etcd-servers=" + strings.Join(servers, ","),
			"--etcd-cafile=" + inControl("ca.crt"), "--etcd-certfile=" + inControl(etcd+".crt"), "--etcd-keyfile=" + inControl(etcd+".key"),
			"--authorization-mode=Node,RBAC", "--client-ca-file=" + inControl("ca.crt"),
			"--tls-cert-file=" + inControl(apiServer+".crt"), "--tls-private-key-file=" + inControl(apiServer+".key"),
			"--kubelet-client-certificate=" + inControl("client.crt"), "--kubelet-client-key=" + inControl("client.key"),
			"--kubelet-preferred-address-types=InternalIP",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + inControl("accounts.crt"), "--service-account-signing-key-file=" + inControl("accounts.key"),
			"--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
			"--enable-admission-plugins=NodeRestriction", "--disable-admission-plugins=ServiceAccount",
			"--shutdown-delay-duration=10s",
		},
		ready: corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(6443), Scheme: corev1.URISchemeHTTPS},
	})
}

// startControllers starts the controllers that nodes need.
func (n *node) startControllers() {
	n.runStatic(static{
		name: controllerManager, cpu: "60m",
		args: []string{
			"--kubeconfig=" + inControl("controller-manager.kubeconfig"), "--use-service-account-credentials", "--bind-address=127.0.0.1",
			"--controllers=node-lifecycle-controller,taint-eviction-controller," +
				"certificatesigningrequest-approving-controller,certificatesigningrequest-signing-controller,certificatesigningrequest-cleaner-controller",
			"--node-monitor-grace-period=20s",
			"--cluster-signing-cert-file=" + inControl("signer.crt"), "--cluster-signing-key-file=" + inControl("signer.key"),
			"--cluster-signing-duration=" + certificateLifetime,
		},
		ready: corev1.HTTPGetAction{Host: "127.0.0.1", Path: "/healthz", Port: intstr.FromInt32(10257), Scheme: corev1.URISchemeHTTPS},
	})
}
