// Package adoption tests nodes with vipgen's agent next to nodes with OpenShift's own keepalived.
package adoption
