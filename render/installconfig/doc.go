// Package installconfig reads what vipgen needs from install-config.yaml and agent-config.yaml,
// in all spellings that OpenShift's installer has had, and returns it in one form, with every
// problem that these files alone show.
//
// Returned names, addresses and other text are checked against strict alphabets, so that they
// are safe in configuration files. Pull secrets, SSH keys, proxies and the credentials of BMCs,
// vCenters and fencing have no Go type here and are never decoded.
package installconfig
