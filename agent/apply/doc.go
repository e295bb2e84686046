// Package apply puts a daemon's configuration file in place: rendered, checked
// by the daemon's own parser, replaced in one step, then reloaded. What does not
// check out is never applied, and a storm of changes costs a bounded number of
// reloads.
package apply
