package rig

import (
	"fmt"
	"net/netip"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// OperatorsCoreDNS returns the manifest of the operator's CoreDNS, which reads OperatorsCorefile in
// place of a file that a monitor writes.
func OperatorsCoreDNS(namespace, image string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: coredns, namespace: %s}
spec:
  hostNetwork: true
  priorityClassName: system-node-critical
  tolerations: [{operator: Exists}]
  containers:
  - name: coredns
    image: %q
    command: [/usr/bin/coredns, -conf, %s]
    securityContext: {runAsUser: 0}
    readinessProbe: {httpGet: {path: /health, port: 18080}, periodSeconds: 2}
    volumeMounts: [{name: conf, mountPath: /etc/coredns, readOnly: true}]
  volumes: [{name: conf, hostPath: {path: /etc/coredns, type: DirectoryOrCreate}}]
`, namespace, image, v1alpha1.Corefile)
}

// OperatorsCorefile returns a Corefile with the names of a cluster's API, which forwards other
// queries to a server.
func OperatorsCorefile(apiVIP netip.Addr, domain, server string) string {
	return fmt.Sprintf(`. {
    errors
    health :18080
    hosts {
        %[1]s api.%[2]s api-int.%[2]s
        fallthrough
    }
    forward . %[3]s
}
`, apiVIP, domain, server)
}
