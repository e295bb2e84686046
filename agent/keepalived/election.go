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

// election moves the node to other VRRP settings together with the other nodes. It is
// owned by the loop goroutine, except for adverts.
type election struct {
	machine migration.Machine
	adverts *advertListener
	begun   time.Time // start of the job
	timer   *time.Timer

	modeFile   modeFile
	checked    string // the last configuration given to keepalived's parser
	checkedErr error
	storing    logging.Transitions
	last       elected
	idle       []string // reasons for left-out VIPs, as logged last
	deciding   logging.Transitions
}

// elected is the outcome of an election.
type elected struct {
	settings  v1alpha1.VRRPSettings
	conf      *keepalived.Conf // nil while the settings are not known
	leftOut   bool             // by the mode file (without)
	moves     state.Moves
	migration *state.Migration
}

// wake calls now after a delay; a pending call is replaced.
func (e *election) wake(after time.Duration, now func()) {
	if e.timer == nil {
		e.timer = time.AfterFunc(after, now)
	} else {
		e.timer.Reset(after)
	}
}

// readSettings returns the settings stored by writeSettings, nil if the file is missing
// or invalid.
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
