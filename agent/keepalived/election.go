package keepalived

import (
	"time"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/migration"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// election moves the node to other VRRP settings with the others. It is owned by the loop
// goroutine, but for the listener.
type election struct {
	machine migration.Machine
	adverts *advertListener
	begun   time.Time // of the job
	timer   *time.Timer

	modeFile   modeFile
	checked    string // the configuration that keepalived's parser checked last
	checkedErr error
	storing    logging.Transitions
	last       elected
	idle       []string // why VIPs are left out, as it was logged
	deciding   logging.Transitions
}

// elected is the outcome of an election.
type elected struct {
	settings  v1alpha1.VRRPSettings
	conf      *keepalived.Conf // nil while the settings are not known
	leftOut   bool             // by the mode file
	moves     state.Moves
	migration *state.Migration
}

// wake calls now after a time, and cancels the call before.
func (e *election) wake(after time.Duration, now func()) {
	if e.timer == nil {
		e.timer = time.AfterFunc(after, now)
	} else {
		e.timer.Reset(after)
	}
}
