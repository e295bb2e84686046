// Package supervise runs daemons as children of the agent: they die with it, are
// restarted when they end, and leave no process behind.
package supervise
