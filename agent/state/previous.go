package state

import (
	"encoding/json"
	"time"
)

// outcome is the outcome of configurations in states of keepalived's agents up to
// e244bb3, now part of Daemon.
type outcome struct {
	Applied   int       `json:"applied"`
	Refused   int       `json:"refused"`
	Failed    int       `json:"failed"`
	AppliedAt time.Time `json:"appliedAt"`
	RefusedAt time.Time `json:"refusedAt"`
	Problem   string    `json:"problem"`
}

// UnmarshalJSON accepts the states of this version and the one before: while vipgen is
// upgraded node by node, `vipgen status` and `vipgen-agent status` see both.
func (k *Keepalived) UnmarshalJSON(data []byte) error {
	type published Keepalived
	of := struct {
		*published
		Config *outcome `json:"config"`
	}{published: (*published)(k)}
	if err := json.Unmarshal(data, &of); err != nil {
		return err
	}
	if c := of.Config; c != nil {
		k.Reloads, k.LastReload, k.Refused, k.Failed, k.Problem = c.Applied, c.AppliedAt, c.Refused, c.Failed, c.Problem
		if !c.RefusedAt.IsZero() {
			k.LastRefusal = &Refusal{Time: c.RefusedAt, Why: c.Problem}
		}
	}
	return nil
}
