// Package golden holds the project's cases: one folder each under cases, with
// a cluster's input beside everything that vipgen makes of it. Its tests compare
// the two, and put every output to the program or the type that will read it.
//
// A case has
//
//	install-config.yaml  says in its first comment what the case is for; or else
//	clusterinstance.yaml, siteconfig.yaml or agentclusterinstall.yaml, with the
//	objects beside it
//	vipgen.yaml          optional, as beside any install-config
//	agent-config.yaml    optional, and so is cluster-ingress-02-config.yml
//	release.json         optional, output of oc adm release info -o json
//	flags                optional, more flags for every command
//	nodes/NAME.yaml      facts of a node, for vipgen preview --facts
//	nodes/NAME.flags     or the flags of vipgen preview for a node
//	expected/            what comes out; go test ./golden -update writes it
//
// In expected/ stands what a person reviews. Of most cases that is summary.txt,
// cluster.yaml, and differences.txt: all other files, and how they differ from those of
// the case baremetal-usermanaged. A few cases, which together have every kind of file,
// are kept whole:
//
//	summary.txt      the report and the summary of vipgen validate
//	pools.txt        every file and unit of each pool
//	files/POOL/      their contents, but for those that are shipped verbatim
//	                 and so the same for every cluster; what all pools share
//	                 stands once, in files/every-pool/, the bootstrap host's
//	                 where it is the same
//	manifests/       the cluster manifests
//	preview/NODE/    what the daemons of a node run
//	machineconfigs/, ignition/, butane/
//	                 the encoded forms, for a few cases; those of the others
//	                 are decoded and compared with files/
//
// The folder external has cases of vipgen external-lb, see external_test.go, the
// folder openstack those of vipgen openstack-hints, see openstack_test.go, and the
// folder verified what vipgen verify and vipgen explain say of a few cases.
package golden
