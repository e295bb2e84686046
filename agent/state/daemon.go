package state

import "time"

// Daemon is what the runner of a daemon has done.
type Daemon struct {
	// PID is the daemon's process ID, 0 while it does not run.
	PID int `json:"pid,omitempty"`
	// Restarts is how often it was started again, Reloads how many
	// configurations were applied, LastReload when the last one was.
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

// Config is what became of a daemon's configurations.
type Config struct {
	// Applied counts configurations that the daemon was told to read.
	Applied int `json:"applied"`
	// Refused counts those that it would not have, Failed those that failed
	// otherwise, each once however often it was tried.
	Refused int `json:"refused"`
	Failed  int `json:"failed"`
	// AppliedAt is when the last one was applied.
	AppliedAt time.Time `json:"appliedAt,omitzero"`
	// RefusedAt is when one was refused, or failed otherwise, for the last time.
	RefusedAt time.Time `json:"refusedAt,omitzero"`
	// Problem says why the latest configuration is not the one that runs.
	Problem string `json:"problem,omitempty"`
}
