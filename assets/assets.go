// Package assets holds what is shipped verbatim: files that are the same on
// every node of every cluster, and the table of default images.
package assets

import _ "embed"

// NetworkManager keeps NetworkManager from writing /etc/resolv.conf itself.
//
//go:embed networkmanager.conf
var NetworkManager string

// NetworkManagerPath is where it goes. The name is vipgen's own: the operator's
// file beside it has settings for others too.
const NetworkManagerPath = "/etc/NetworkManager/conf.d/99-vipgen.conf"

// Images is the table of default images; see images.yaml for its form.
//
//go:embed images.yaml
var Images []byte
