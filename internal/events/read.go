package events

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is read, whatever a file holds: a record has at most two files of
// maxFile, and people may join those of some nodes.
const (
	maxRead   = 64 << 20
	maxEvents = 200_000
)

// Skipped counts lines that were not taken.
type Skipped struct {
	// Torn are no whole event, as where a node lost its power.
	Torn int `json:"torn,omitempty"`
	// Unknown are of a kind that this version does not know.
	Unknown int `json:"unknown,omitempty"`
	// Beyond says that there was more than is read.
	Beyond bool `json:"beyond,omitempty"`
}

// Read reads events, up to maxEvents of them, in the order of the file. Lines that are
// torn, too long or not events are left out and counted: the bytes may come from anybody.
// The error is that of from.
func Read(from io.Reader) (list []Event, skipped Skipped, err error) {
	lines := bufio.NewReaderSize(&io.LimitedReader{R: from, N: maxRead}, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			skipped.Torn++
			if err = skipLine(lines); err == nil {
				continue
			}
			line = nil
		}
		if len(strings.TrimSpace(string(line))) > 0 {
			switch e, ok := parse(line); {
			case !ok:
				skipped.Torn++
			case !slices.Contains(kinds, e.Kind):
				skipped.Unknown++
			case len(list) == maxEvents:
				skipped.Beyond = true
				return list, skipped, nil
			default:
				list = append(list, e)
			}
		}
		if errors.Is(err, io.EOF) {
			return list, skipped, nil
		}
		if err != nil {
			return list, skipped, err
		}
	}
}

// skipLine reads to the end of a line that is too long.
func skipLine(lines *bufio.Reader) error {
	for {
		_, err := lines.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// Times that an event may have: a node without a clock says 1970.
var (
	earliest = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

func possible(t time.Time) bool { return !t.Before(earliest) && !t.After(latest) }

// longestUp is how long a node may be up.
const longestUp = Millis(100 * 365 * 24 * 3600 * 1000)

func length(m Millis) bool { return m >= 0 && m <= longestUp }

// parse reads a line, and says whether it is an event that can be.
func parse(line []byte) (e Event, ok bool) {
	if json.Unmarshal(line, &e) != nil {
		return e, false
	}
	e.bound()
	e.Time, e.At = e.Time.UTC(), e.At.UTC()
	switch {
	case !named(e.Node) || e.Kind == "":
	case !length(e.Up) || !length(e.For) || !length(e.OnTime) || !length(e.Delay):
	case !possible(e.Time) || !e.At.IsZero() && !possible(e.At):
	case e.Kind == State && e.State == "", e.Settings == nil && (e.Kind == Settings || e.Kind == Move):
	default:
		return e, true
	}
	return e, false
}

// named says whether a text can be the name of a node: it is shown as a column.
func named(s string) bool {
	return s != "" && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) })
}

var kinds = []Kind{
	AgentStarted, AgentStopping, AgentStopped, KeepalivedStarting, KeepalivedDied, KeepalivedStopped, KeepalivedReload,
	State, SilentHolder, HolderStops, HigherHeard, LowerHeard, StoppedSending, Link, Held, Lost, Check, Priority, Effective,
	Instance, LeftOut, Settings, Move, Refused, Holder, Strangers, Guard, Late, Throttled,
}
