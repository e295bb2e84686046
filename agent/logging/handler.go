package logging

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/vipgen/vipgen/internal/lazy"
)

// Formats lists the formats of log lines; the first is the default.
var Formats = []string{"text", "json"}

// New returns a logger that writes lines in one of Formats. Times are in UTC, with milliseconds,
// and a record without an error has no attribute "error".
func New(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: normalize}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

func normalize(groups []string, a slog.Attr) slog.Attr {
	switch {
	case len(groups) == 0 && a.Key == slog.TimeKey:
		a.Value = slog.TimeValue(a.Value.Time().UTC().Truncate(time.Millisecond))
	case a.Key == "error" && (a.Value.Any() == nil || a.Value.Any() == ""):
		return slog.Attr{}
	}
	return a
}

// Lines returns a writer for the log of a daemon. Each Write is a line; it becomes a record of log.
func Lines(log *slog.Logger, daemon string) io.Writer {
	return lines{log.With("daemon", daemon)}
}

type lines struct{ log *slog.Logger }

func (l lines) Write(line []byte) (int, error) {
	if level, text := ParseLine(line); text != "" {
		l.log.Log(context.Background(), level, text)
	}
	return len(line), nil
}

// mark is the level that HAProxy, with its process ID, and CoreDNS put before a line.
var mark = lazy.Regexp(`^\[([A-Z]+)\] *(?:\([0-9]+\) : )?`)

var marks = map[string]slog.Level{
	"DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo, "NOTICE": slog.LevelInfo, "WARNING": slog.LevelWarn,
	"ALERT": slog.LevelError, "EMERG": slog.LevelError, "ERROR": slog.LevelError, "FATAL": slog.LevelError, "PANIC": slog.LevelError,
}

// ParseLine returns the text of a daemon's line without the time that keepalived puts before it
// and the level that others do, and that level, INFO for none.
func ParseLine(line []byte) (level slog.Level, text string) {
	line = bytes.TrimSpace(line)
	if n := len(time.ANSIC); len(line) > n && line[n] == ':' {
		if _, err := time.Parse(time.ANSIC, string(line[:n])); err == nil {
			line = bytes.TrimSpace(line[n+1:])
		}
	}
	text = string(line)
	if m := mark().FindStringSubmatch(text); m != nil {
		if l, known := marks[m[1]]; known {
			level, text = l, strings.TrimSpace(text[len(m[0]):])
		}
	}
	return level, text
}
