package state

import "time"

// Daemon is the state of a daemon and its configuration.
type Daemon struct {
	// PID is the daemon's process ID in the job's own container, 0 while it does not run.
	PID int `json:"pid,omitempty"`
	// Restarts counts restarts after the daemon ended although it was wanted, Reloads the
	// configurations that it was sent; LastReload is the time of the last one.
	Restarts   int       `json:"restarts"`
	Reloads    int       `json:"reloads"`
	LastReload time.Time `json:"lastReload,omitzero"`
	// Refused counts configurations refused by the daemon's parser, Failed those that
	// failed otherwise, each once.
	Refused int `json:"refused"`
	Failed  int `json:"failed"`
	// Problem is why the latest configuration is not in use.
	Problem string `json:"problem,omitempty"`
	// LastRefusal is the last configuration that was not applied.
	LastRefusal *Refusal `json:"lastRefusal,omitempty"`
}

// Refusal is a configuration that was not applied.
type Refusal struct {
	Time time.Time `json:"time"`
	Why  string    `json:"why"`
}
