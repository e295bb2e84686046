package logging

import (
	"context"
	"log/slog"
	"sync"
)

// Transitions logs changes of a recurring error: once when it begins, once when it
// changes, once when it ends. Jobs poll the same things again and again, and repeated
// lines would hide new ones. The zero value is for an operation without an error so far.
type Transitions struct {
	mu   sync.Mutex
	last string
}

// Error records the result of an operation, nil for success. what describes the
// effect of an error on the node, over its end; args are further arguments, as for
// slog.Logger.Error. It reports whether err is the same as before.
func (t *Transitions) Error(log *slog.Logger, err error, what, over string, args ...any) (same bool) {
	return t.record(log, slog.LevelError, err, what, over, args)
}

// Warn is like Error, for an operation that the node can do without.
func (t *Transitions) Warn(log *slog.Logger, err error, what, over string, args ...any) (same bool) {
	return t.record(log, slog.LevelWarn, err, what, over, args)
}

func (t *Transitions) record(log *slog.Logger, level slog.Level, err error, what, over string, args []any) (same bool) {
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
