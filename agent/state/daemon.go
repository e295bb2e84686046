package state

import "time"

// Daemon is what the runner of a daemon has done.
type Daemon struct {
	// PID is the daemon's process ID in the job's own container, 0 while it does not run.
	PID int `json:"pid,omitempty"`
	// Restarts counts how often it was started again, because it ended although it was
	// wanted; Reloads configurations that it was told to read, LastReload is when the last
	// one was.
	Restarts   int       `json:"restarts"`
	Reloads    int       `json:"reloads"`
	LastReload time.Time `json:"lastReload,omitzero"`
	// Refused counts configurations that the daemon's parser refused, Failed those
	// that failed otherwise, each once however often it was tried.
	Refused int `json:"refused"`
	Failed  int `json:"failed"`
	// Problem says why the latest configuration is not the one that runs.
	Problem string `json:"problem,omitempty"`
	// LastRefusal is the last configuration that was not applied.
	LastRefusal *Refusal `json:"lastRefusal,omitempty"`
}

// Refusal is a configuration that was not applied.
type Refusal struct {
	Time time.Time `json:"time"`
	Why  string    `json:"why"`
}
