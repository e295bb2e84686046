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

// Limits of the input: a record has at most two files of maxFile, and people may join those of
// some nodes.
const (
	maxRead   = 64 << 20
	maxEvents = 200_000
)

// Skipped counts lines that were skipped.
type Skipped struct {
	// Torn lines are incomplete, as after a power failure.
	Torn int `json:"torn,omitempty"`
	// Unknown lines are of a kind that this version does not know.
	Unknown int `json:"unknown,omitempty"`
	// Beyond is set where there was more than the limit.
	Beyond bool `json:"beyond,omitempty"`
}

// Read reads events, up to maxEvents of them, in the order of the file. Torn, too long and
// invalid lines are skipped and counted: the input is untrusted. The error is from's.
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

func skipLine(lines *bufio.Reader) error {
	for {
		_, err := lines.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// Times that an event may have: a node without a clock has 1970.
var (
	earliest = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

func possible(t time.Time) bool { return !t.Before(earliest) && !t.After(latest) }

// longestUp is the longest uptime of a node.
const longestUp = Millis(100 * 365 * 24 * 3600 * 1000)

func length(m Millis) bool { return m >= 0 && m <= longestUp }

// parse parses a line, and reports whether it is a valid event.
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
	case e.Kind == Announced && !e.VIP.IsValid(), e.Kind == Session && !e.Peer.IsValid():
	case e.Kind == State && e.State == "", e.Settings == nil && (e.Kind == Settings || e.Kind == Migration):
	default:
		return e, true
	}
	return e, false
}

// named reports whether text is a valid name of a node: it is shown as a column.
func named(s string) bool {
	return s != "" && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) })
}

var kinds = []Kind{
	AgentStarted, AgentStopping, AgentStopped, KeepalivedStarting, KeepalivedDied, KeepalivedStopped, KeepalivedReload,
	State, SilentHolder, HolderStops, HigherReceived, LowerReceived, StoppedSending, Link, Held, Lost, Check, Priority, Effective,
	Instance, LeftOut, Settings, Migration, Refused, Holder, Strangers, Guard, Late, Throttled, Announced, Session, Problem,
}
