package gate

import (
	"context"
	"errors"
	"testing"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

// HAProxy is probed only while the haproxy job publishes no recent answer. Changes that this
// job publishes count at once, except for those that the check itself has to detect.
func TestAnswers(t *testing.T) {
	serving := state.HAProxy{Serving: true}
	for name, tt := range map[string]struct {
		before, now *state.HAProxy // published by the haproxy job; nil: it does not run
		noted       bool           // HAProxy answered just now
		asked       bool
		failed      string
	}{
		"it serves":                        {before: &serving, now: &serving, noted: true},
		"a job that says nothing of it":    {before: &serving, now: &serving, asked: true},
		"no job":                           {asked: true},
		"no job any more":                  {before: &serving, noted: true, asked: true},
		"it hangs":                         {before: &serving, now: &state.HAProxy{Why: "no answer"}, noted: true, asked: true, failed: "no answer"},
		"it goes on hanging":               {before: &state.HAProxy{Why: "no answer"}, now: &state.HAProxy{Why: "no answer"}, asked: true},
		"it crashed, and is started again": {before: &serving, now: &state.HAProxy{Restarting: true, Why: "it ended"}, noted: true, asked: true},
		"it is being stopped":              {before: &serving, now: &state.HAProxy{Leaving: true, Why: "it is being stopped"}, noted: true, asked: true},
		"it serves, being stopped":         {before: &serving, now: &state.HAProxy{Serving: true, Leaving: true}, noted: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			reader, err := state.Open(path)
			testkit.Must(t, err)
			defer reader.Close()
			a := newAnswers(reader)
			writer, err := state.Open(path)
			testkit.Must(t, err)
			defer writer.Close()
			for _, s := range []*state.HAProxy{tt.before, tt.now} {
				if s == nil {
					err = writer.Close()
				} else {
					err = writer.Publish(*s)
				}
				testkit.Must(t, err)
				a.poll()
			}
			asked := false
			list := []health.Check{{Name: health.FactAPI}, {Name: health.FactHAProxy, Probe: func(context.Context) error {
				asked = true
				return errors.New("refused")
			}}}
			a.use(list)
			err = errors.New("not noted")
			testkit.Await(t, "a probe soon after the answer", func() bool {
				asked = false
				if tt.noted && (tt.before != nil || tt.now != nil) {
					testkit.Must(t, writer.Answers(state.HAProxy{}).Record())
				}
				err = list[1].Probe(t.Context())
				return asked == tt.asked
			})
			if (err != nil) != tt.asked {
				t.Errorf("asked %t, error %v", tt.asked, err)
			}
			failed := ""
			select {
			case failed = <-list[1].Failed:
			default:
			}
			testkit.Equal(t, tt.failed, failed)
			if list[0].Failed != nil || list[0].Probe != nil {
				t.Error("another check rests on the answers of HAProxy")
			}
		})
	}
}
