package keepalived

import (
	"encoding/json"
	"os"
	"time"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/migration"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/atomicfile"
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

// readSettings returns what writeSettings wrote, nil for a file that is missing
// or worth nothing.
func readSettings(path string) *v1alpha1.VRRPSettings {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var v v1alpha1.VRRPSettings
	if json.Unmarshal(data, &v) != nil {
		return nil
	}
	n := v1alpha1.Node{Name: "node", Role: v1alpha1.RoleMaster, VRRP: &v}
	if n.Validate().Err() != nil {
		return nil
	}
	return &v
}

func writeSettings(path string, v v1alpha1.VRRPSettings) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = atomicfile.Write(path, append(data, '\n'), 0o644)
	return err
}
