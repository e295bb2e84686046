package migration

import (
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestFollow(t *testing.T) {
	one := evidence{heard: true}
	many := evidence{heard: true, continues: true}
	said := evidence{heard: true, announced: true}
	both := evidence{heard: true, continues: true, announced: true}
	tests := []struct {
		name   string
		at     time.Duration // of the instant, after now
		none   bool          // there is no instant
		agreed bool
		heard  evidence
		want   bool
	}{
		{name: "a forged advert, and nobody has agreed on anything", none: true, heard: one},
		{name: "many of them", none: true, heard: many},
		{name: "a forged advert before the agreed instant", at: 5 * time.Second, agreed: true, heard: one},
		{name: "a moment before", at: time.Millisecond, agreed: true, heard: one},
		{name: "when the agreed instant has come", at: 0, agreed: true, heard: one, want: true},
		{name: "after it", at: -time.Second, agreed: true, heard: one, want: true},
		{name: "long after it", at: -time.Minute, agreed: true, heard: many},
		{name: "silence at the instant", at: 0, agreed: true},
		{name: "another clock is ahead", at: 5 * time.Second, agreed: true, heard: many, want: true},
		{name: "adverts go on long before the instant", at: 15 * time.Second, agreed: true, heard: many},
		{name: "another clock is far ahead, and its node says that it migrated", at: 15 * time.Second, agreed: true, heard: both, want: true},
		{name: "a forged advert while an instant passes that nobody agreed on", at: -time.Second, heard: one},
		{name: "this node has withdrawn too late", at: -time.Second, heard: many, want: true},
		{name: "not all had agreed yet", at: 5 * time.Second, heard: many},
		{name: "a node says that it migrated, and one advert came", none: true, heard: said},
		{name: "a node says that it migrated, and sends adverts", none: true, heard: both, want: true},
		{name: "a node says that it migrated, and is silent", none: true, heard: evidence{announced: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m instants
			now := time.Now()
			if !tt.none {
				// As announced before it passed.
				m.add(now.Add(tt.at-time.Minute), now.Add(tt.at), tt.agreed)
			}
			testkit.Equal(t, tt.want, m.follow(now, tt.heard))
		})
	}
}

// A withdrawn instant counts in addition to the next one, each for a limited time.
func TestInstants(t *testing.T) {
	now := time.Now()
	var m instants
	m.add(now, now.Add(20*time.Second), false)
	m.add(now, now.Add(20*time.Second+time.Millisecond), true) // the same instant by the wall clock
	m.add(now.Add(13*time.Second), now.Add(50*time.Second), false)
	if len(m) != 2 || !m[0].agreed || m[1].agreed {
		t.Fatalf("%+v", m)
	}
	testkit.Equal(t, 7*time.Second, m.next(now.Add(13*time.Second), time.Minute))
	testkit.Equal(t, time.Second, m.next(now.Add(13*time.Second), time.Second))
	m.add(now.Add(20*time.Second+afterTime+time.Millisecond), now.Add(50*time.Second), false)
	if len(m) != 1 || !m[0].at.Equal(now.Add(50*time.Second)) {
		t.Errorf("%+v", m)
	}
	m.add(now.Add(time.Hour), now.Add(time.Minute), false)
	testkit.Equal(t, 0, len(m))
	for range 2 {
		m.add(now, now.Add(-afterTime), false)
	}
	testkit.Equal(t, 1, len(m))
}
