package reference

// figures holds today's intervals and counts; times are in seconds.
type figures struct {
	// KeepalivedPoll is the interval in which keepalived-monitor checks for another configuration
	// and for the redirect (baremetal-runtimecfg, cmd/dynkeepalived: check-interval).
	KeepalivedPoll int
	// BootstrapPoll is the same interval on the bootstrap host (machine-config-operator,
	// manifests/on-prem/keepalived.yaml).
	BootstrapPoll int
	// HAProxyPoll is the interval in which haproxy-monitor checks for another configuration and
	// sends a request to an API server through HAProxy (baremetal-runtimecfg, cmd/monitor:
	// check-interval).
	HAProxyPoll int
	// Agreeing is the number of consecutive polls with the same new configuration before a monitor
	// applies it (baremetal-runtimecfg, pkg/monitor: cfgChangeThreshold,
	// cfgKeepalivedChangeThreshold).
	Agreeing int
	// Healthy and Unhealthy are the numbers of consecutive answers that add and remove the redirect
	// (baremetal-runtimecfg, pkg/monitor: k8sHealthThresholdOn and -Off).
	Healthy, Unhealthy int
	// BootstrapFailures is the number of consecutive seconds without an answer of API server and
	// Ironic on the bootstrap host (baremetal-runtimecfg, pkg/monitor: more than
	// bootstrapApiFailuresThreshold).
	BootstrapFailures int
	// AnswerWithin is the timeout of a request of haproxy-monitor; the original has none.
	AnswerWithin int
}

var today = figures{
	KeepalivedPoll:    10,
	BootstrapPoll:     5,
	HAProxyPoll:       6,
	Agreeing:          3,
	Healthy:           3,
	Unhealthy:         2,
	BootstrapFailures: 5,
	AnswerWithin:      5,
}

// script is a check script of keepalived (machine-config-operator,
// templates/master/00-master/on-prem and templates/worker/00-worker/on-prem,
// keepalived-keepalived.yaml).
type script struct {
	Name    string
	Command string
	// Timeout is the timeout of a run in seconds.
	Timeout string
	// Interval is the time between two runs in seconds.
	Interval int
	// Weight is added to the priority while the script succeeds; 0 means that the instance is in
	// state FAULT while it fails.
	Weight int
	// Rise and Fall are the numbers of consecutive runs that change the result.
	Rise, Fall int
}

// apiScripts returns the scripts of the API VIP on the control plane. chk_mcs is from
// machine-config-operator 4129, its interval from its neighbours.
func apiScripts() []script {
	return []script{
		{Name: "chk_ocp_lb", Command: checkDir + "/chk_ocp_lb.sh", Timeout: "1.9", Interval: 2, Weight: 20, Rise: 3, Fall: 3},
		{Name: "chk_ocp_both", Command: checkDir + "/chk_ocp_both.sh", Timeout: "1.9", Interval: 2, Weight: 5, Rise: 3, Fall: 3},
		{Name: "chk_mcs", Command: checkDir + "/chk_mcs.sh", Timeout: "1.9", Interval: 2, Weight: 3, Rise: 3, Fall: 3},
	}
}

// ingressScripts returns the scripts of the ingress VIP on every node. router is the URL of the
// router's health endpoint. chk_ingress is from machine-config-operator 3698, its rise and fall are
// those of chk_ingress_ready.
func ingressScripts(router string) []script {
	return []script{
		{Name: "chk_ingress", Command: "/usr/bin/curl -o /dev/null -Lfs " + router + "/healthz", Timeout: "0.9", Interval: 1, Rise: 3, Fall: 2},
		{Name: "chk_ingress_ready", Command: "/usr/bin/curl -o /dev/null -Lfs " + router + "/healthz/ready", Timeout: "0.9", Interval: 1, Weight: 10, Rise: 3, Fall: 2},
		{Name: "chk_default_ingress", Command: checkDir + "/chk_default_ingress.sh", Timeout: "4.9", Interval: 5, Weight: 50, Rise: 3, Fall: 2},
	}
}
