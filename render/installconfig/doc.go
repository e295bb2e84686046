// Package installconfig reads what vipgen needs from install-config.yaml and
// agent-config.yaml, in all spellings that OpenShift's installer has had, and
// returns it in one form, with every problem that these files alone show.
//
// Names, addresses and other text that it returns are checked against strict
// alphabets, so that they are safe in the configuration files that they end
// up in. Pull secrets, SSH keys, proxies and the credentials of BMCs, vCenters
// and fencing have no Go type here and are never decoded.
package installconfig
