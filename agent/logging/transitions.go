package logging

import (
	"context"
	"log/slog"
	"sync"
)

// Transitions logs error transitions: once when an error begins, once when it
// turns into something else, once when it is over. A job looks at the same things
// again and again, and a log that repeats itself hides what is new. The zero value is
// for one thing that has not gone wrong so far.
type Transitions struct {
	mu   sync.Mutex
	last string
}

// Error takes in how the thing went just now, nil for well. what says what an
// error means for the node, over that it is past; args are more, as for
// slog.Logger.Error. It says whether err is the one from before.
func (t *Transitions) Error(log *slog.Logger, err error, what, over string, args ...any) (same bool) {
	return t.note(log, slog.LevelError, err, what, over, args)
}

// Warn is Error for what the node can do without.
func (t *Transitions) Warn(log *slog.Logger, err error, what, over string, args ...any) (same bool) {
	return t.note(log, slog.LevelWarn, err, what, over, args)
}

func (t *Transitions) note(log *slog.Logger, level slog.Level, err error, what, over string, args []any) (same bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == t.last:
		return true
	case text != "":
		log.Log(context.Background(), level, what, append([]any{"error", text}, args...)...)
	default:
		log.Info(over, args...)
	}
	t.last = text
	return false
}
