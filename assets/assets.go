// Package assets holds the files that are shipped verbatim, the same on every node of every
// cluster, and the tables of images, platforms, releases and the operator contract.
package assets

import _ "embed"

// NetworkManager keeps NetworkManager from writing /etc/resolv.conf itself.
//
//go:embed networkmanager.conf
var NetworkManager string

// NetworkManagerPath is its path on the node. The operator's file next to it has settings for
// others too, so the name is vipgen's own.
const NetworkManagerPath = "/etc/NetworkManager/conf.d/99-vipgen.conf"

// Images is the table of default images; see images.yaml for its form.
//
//go:embed images.yaml
var Images []byte
