package kubeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Delays without a request, like the real server's.
const (
	bookmarkEvery = time.Minute
	watchTimeout  = 30 * time.Minute
)

type watchOptions struct {
	revision  int  // changes after it are sent
	initial   bool // send the existing objects first
	end       bool // mark the end of the existing objects
	bookmarks bool // send the current revision occasionally
	timeout   time.Duration
}

func newWatchOptions(query url.Values) (o watchOptions, err error) {
	bad := func(name string) error {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid %s %q", name, query.Get(name)))
	}
	revision := query.Get("resourceVersion")
	o.initial = revision == "" || revision == "0"
	if !o.initial {
		if o.revision, err = strconv.Atoi(revision); err != nil || o.revision < 0 {
			return o, bad("resourceVersion")
		}
	}
	o.bookmarks = query.Get("allowWatchBookmarks") == "true"
	if text := query.Get("sendInitialEvents"); text != "" {
		if o.initial, err = strconv.ParseBool(text); err != nil {
			return o, bad("sendInitialEvents")
		}
		o.end = o.initial
	}
	o.timeout = watchTimeout
	if text := query.Get("timeoutSeconds"); text != "" {
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds < 0 {
			return o, bad("timeoutSeconds")
		}
		if seconds > 0 {
			o.timeout = time.Duration(seconds) * time.Second
		}
	}
	return o, nil
}

// watch sends changes until the client or the server ends, or the timeout.
func (s *life) watch(w http.ResponseWriter, r *http.Request, sel selection) error {
	o, err := newWatchOptions(r.URL.Query())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	t := &sender{w: w, flush: http.NewResponseController(w).Flush, sel: sel, watchOptions: o}
	timeout, bookmark := time.NewTimer(o.timeout), time.NewTicker(bookmarkEvery)
	defer timeout.Stop()
	defer bookmark.Stop()
	t.begin(s.plane.store)
	for {
		more := t.catchUp(s.plane.store)
		if t.err != nil {
			return nil
		}
		select {
		case <-more:
		case <-bookmark.C:
			t.bookmark("")
		case <-timeout.C:
			t.bookmark("")
			return nil
		case <-s.ending:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}

// sender writes the events of one watch.
type sender struct {
	watchOptions
	w     http.ResponseWriter
	flush func() error
	sel   selection
	err   error // ends the watch
}

// begin sends the existing objects, if requested. The revision of the
// request, if any, is then a minimum.
func (t *sender) begin(s *store) {
	if t.initial {
		var objects []object
		objects, t.revision = s.list(t.sel)
		for _, o := range objects {
			t.send(watch.Added, o.json)
		}
	} else if t.revision == 0 {
		_, t.revision = s.list(t.sel)
	}
	if t.end {
		t.bookmark(`"annotations":{"` + metav1.InitialEventsAnnotationKey + `":"true"},`)
	}
}

// catchUp sends the pending changes, and returns a channel that is closed when there are more.
func (t *sender) catchUp(s *store) <-chan struct{} {
	events, revision, more, err := s.since(t.revision)
	if err != nil {
		status, _ := json.Marshal(statusOf(err))
		t.send(watch.Error, status)
		t.err = err
	}
	for _, e := range events {
		if kind, o, ok := t.sel.event(e); ok {
			t.send(kind, o.json)
		}
	}
	t.revision = max(t.revision, revision)
	if err := t.flush(); err != nil {
		t.err = err
	}
	return more
}

// bookmark sends the current revision, if requested.
func (t *sender) bookmark(annotations string) {
	if t.bookmarks {
		t.send(watch.Bookmark, fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{%s"resourceVersion":"%d"}}`,
			t.sel.kind, t.sel.GroupVersion(), annotations, t.revision))
	}
}

func (t *sender) send(kind watch.EventType, object []byte) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, `{"type":%q,"object":%s}`+"\n", kind, object)
	}
}
