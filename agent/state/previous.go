package state

import (
	"encoding/json"
	"time"
)

// outcome is what became of configurations as keepalived's agents published it up to
// e244bb3: in a field of its own, where it is part of Daemon now.
type outcome struct {
	Applied   int       `json:"applied"`
	Refused   int       `json:"refused"`
	Failed    int       `json:"failed"`
	AppliedAt time.Time `json:"appliedAt"`
	RefusedAt time.Time `json:"refusedAt"`
	Problem   string    `json:"problem"`
}

// UnmarshalJSON reads what agents of this version publish, and of the one before it: while
// vipgen is upgraded node by node, `vipgen status` and `vipgen-agent status` see both.
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
