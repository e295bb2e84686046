package reference

// figures are today's intervals and counts, in seconds where they are times.
type figures struct {
	// KeepalivedPoll is how often keepalived-monitor looks for another
	// configuration, and whether the redirect is there (baremetal-runtimecfg,
	// cmd/dynkeepalived: check-interval).
	KeepalivedPoll int
	// BootstrapPoll is the same on the bootstrap host (machine-config-operator,
	// manifests/on-prem/keepalived.yaml).
	BootstrapPoll int
	// HAProxyPoll is how often haproxy-monitor looks for another configuration and
	// asks HAProxy for an API server (baremetal-runtimecfg, cmd/monitor:
	// check-interval).
	HAProxyPoll int
	// Agreeing is how many looks in a row must find the same new configuration
	// before a monitor applies it (baremetal-runtimecfg, pkg/monitor:
	// cfgChangeThreshold, cfgKeepalivedChangeThreshold).
	Agreeing int
	// Healthy and Unhealthy are how many answers in a row place and withdraw the
	// redirect (baremetal-runtimecfg, pkg/monitor: k8sHealthThresholdOn and -Off).
	Healthy, Unhealthy int
	// BootstrapFailures is how many seconds in a row neither API server nor Ironic
	// may answer on the bootstrap host (baremetal-runtimecfg, pkg/monitor: more
	// than bootstrapApiFailuresThreshold).
	BootstrapFailures int
	// AnswerWithin bounds one question of haproxy-monitor, which today has no bound.
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

// script is a check that keepalived runs (machine-config-operator,
// templates/master/00-master/on-prem and templates/worker/00-worker/on-prem,
// keepalived-keepalived.yaml).
type script struct {
	Name    string
	Command string
	// Timeout bounds one run, in seconds.
	Timeout string
	// Interval is how often it runs, in seconds.
	Interval int
	// Weight is added to the priority while it succeeds; 0 means that the instance
	// is in state FAULT while it fails.
	Weight int
	// Rise and Fall are how many runs in a row change the result.
	Rise, Fall int
}

// apiScripts are those of the API VIP on the control plane. chk_mcs is from
// machine-config-operator 4129, its interval from its neighbours.
func apiScripts() []script {
	return []script{
		{Name: "chk_ocp_lb", Command: checkDir + "/chk_ocp_lb.sh", Timeout: "1.9", Interval: 2, Weight: 20, Rise: 3, Fall: 3},
		{Name: "chk_ocp_both", Command: checkDir + "/chk_ocp_both.sh", Timeout: "1.9", Interval: 2, Weight: 5, Rise: 3, Fall: 3},
		{Name: "chk_mcs", Command: checkDir + "/chk_mcs.sh", Timeout: "1.9", Interval: 2, Weight: 3, Rise: 3, Fall: 3},
	}
}

// ingressScripts are those of the ingress VIP on every node. router is where the
// router answers for its health. chk_ingress is from machine-config-operator 3698, its
// rise and fall are those of chk_ingress_ready.
func ingressScripts(router string) []script {
	return []script{
		{Name: "chk_ingress", Command: "/usr/bin/curl -o /dev/null -Lfs " + router + "/healthz", Timeout: "0.9", Interval: 1, Rise: 3, Fall: 2},
		{Name: "chk_ingress_ready", Command: "/usr/bin/curl -o /dev/null -Lfs " + router + "/healthz/ready", Timeout: "0.9", Interval: 1, Weight: 10, Rise: 3, Fall: 2},
		{Name: "chk_default_ingress", Command: checkDir + "/chk_default_ingress.sh", Timeout: "4.9", Interval: 5, Weight: 50, Rise: 3, Fall: 2},
	}
}
