package state

import (
	"context"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"golang.org/x/sys/unix"
)

// long is a state of any length.
type long struct {
	Text string `json:"text"`
}

func (long) JobName() string { return value{}.JobName() }

// Hard case 54: on a full disk a job publishes what fits into the space of its previous state,
// and readers are notified. A state that does not fit withdraws the previous one, and is
// published as soon as there is space.
func TestHardCase54FullDisk(t *testing.T) {
	dir := testkit.SmallDisk(t)
	writer, reader := open(t, dir), open(t, dir)
	ctx, cancel := context.WithCancel(context.Background())
	changed, err := reader.Watch(ctx, value{})
	testkit.Must(t, err)
	defer func() {
		cancel()
		for range changed { // until the watch has ended
		}
	}()
	awaitValue := func(want value) {
		t.Helper()
		for range changed {
			got, err := Read[value](reader)
			testkit.Must(t, err)
			if got != nil && *got == want {
				return
			}
		}
	}
	testkit.Must(t, writer.Publish(value{true, 1}))
	awaitAlive(t, reader, changed, true)
	empty := testkit.FillDisk(t, dir)
	for i := range 100 {
		testkit.Must(t, writer.Publish(value{i%2 == 1, 100000 - 999*i}))
		expect(t, reader, true, value{i%2 == 1, 100000 - 999*i})
	}
	awaitValue(value{true, 100000 - 999*99})
	text := strings.Repeat("x", reserve)
	testkit.Must(t, writer.Publish(long{text}))
	if got, err := Read[long](reader); err != nil || got == nil || got.Text != text {
		t.Errorf("a longer state: %v, %v", got, err)
	}
	testkit.Is(t, writer.Publish(long{strings.Repeat("x", 3*reserve)}), unix.ENOSPC)
	awaitAlive(t, reader, changed, false)
	empty()
	awaitAlive(t, reader, changed, true)
	if got, err := Read[long](reader); err != nil || got == nil || len(got.Text) != 3*reserve {
		t.Errorf("when there is room: %v, %v", got, err)
	}
}

// Readers see one state or the next, never a mixture.
func TestOverwrite(t *testing.T) {
	dir := t.TempDir()
	writer, reader := open(t, dir), open(t, dir)
	states := []long{{strings.Repeat("a", 3000)}, {strings.Repeat("b", 2000)}}
	testkit.Must(t, writer.Publish(states[0]))
	held := writer.held["firewall"].file
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			text := `{"text":"` + states[i%2].Text + `"}`
			if err := writer.overwrite("firewall", held, []byte(text)); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range 2000 {
		if got, err := Read[long](reader); err != nil && !strings.Contains(err.Error(), "all the time") || got != nil && *got != states[0] && *got != states[1] {
			t.Errorf("neither of two states: %.20v, %v", got, err)
			break
		}
	}
	close(stop)
	<-done
}
