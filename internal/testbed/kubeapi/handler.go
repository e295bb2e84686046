package kubeapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"
)

const (
	mergePatch = "application/merge-patch+json"
	// maxBody is the maximum size of an object in bytes, the real server's.
	maxBody = 3 << 20
)

// standInVersion is the answer of /version. It names no release, so that no client can depend
// on one.
var standInVersion = version.Info{Major: "1", Minor: "0", GitVersion: "v1.0.0-stand-in"}

// ServeHTTP serves the API. It answers in JSON, whatever format is requested.
func (s *life) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/readyz":
		if s.stopping() {
			http.Error(w, "[+]ping ok\n[-]shutdown failed: reason withheld\nreadyz check failed", http.StatusInternalServerError)
			return
		}
		fallthrough
	case "/livez", "/healthz":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, "ok")
		return
	case "/version":
		answer(w, http.StatusOK, standInVersion)
		return
	}
	if err := s.serveObjects(w, r); err != nil {
		refuse(w, err)
	}
}

// serveObjects answers a request for objects. If it returns an error, it has written nothing.
func (s *life) serveObjects(w http.ResponseWriter, r *http.Request) error {
	who, err := identify(s.plane.ca, r)
	if err != nil {
		return err
	}
	p, err := parsePath(r.URL.Path)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	sel, err := newSelection(p, query)
	if err != nil {
		return err
	}
	watches := query.Get("watch") == "true" || query.Get("watch") == "1"
	verb := p.verb(r.Method, watches)
	if err := who.authorize(sel, verb); err != nil {
		return err
	}
	switch {
	case r.Method != http.MethodGet:
		return s.change(w, r, p)
	case watches:
		return s.watch(w, r, sel)
	case p.name == "":
		writeList(w, s.plane.store, sel)
		return nil
	}
	o, err := s.plane.store.get(p)
	if err == nil {
		send(w, http.StatusOK, o.json)
	}
	return err
}

// change creates, changes or deletes an object.
func (s *life) change(w http.ResponseWriter, r *http.Request, p objectPath) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	if s.plane.full.Load() { // as kube-apiserver 1.34 passes on the alarm of etcd 3.6
		return apierrors.NewInternalError(errors.New("etcdserver: mvcc: database space exceeded"))
	}
	status, done := http.StatusOK, object{}
	switch {
	case r.Method == http.MethodPost && p.name == "":
		status = http.StatusCreated
		done, err = s.write(body, p, s.plane.store.create)
	case r.Method == http.MethodPut && p.name != "" && !p.status:
		done, err = s.write(body, p, s.plane.store.update)
	case r.Method == http.MethodPatch && p.name != "":
		var patch map[string]any
		if r.Header.Get("Content-Type") != mergePatch {
			return newStatusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "patches are of the type "+mergePatch)
		}
		if err := utiljson.Unmarshal(body, &patch); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		done, err = s.plane.store.patch(p, patch)
	case r.Method == http.MethodDelete && p.name != "" && !p.status:
		done, err = s.plane.store.remove(p)
		if err == nil && !p.tombstone {
			answer(w, status, removed(p, done))
			return nil
		}
	default:
		return newStatusError(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
			"the server does not allow this method on the requested resource")
	}
	if err == nil {
		send(w, status, done.json)
	}
	return err
}

// write stores a JSON object as a new one, or in place of another.
func (s *life) write(body []byte, p objectPath, put func(objectPath, *unstructured.Unstructured) (object, error)) (object, error) {
	o := new(unstructured.Unstructured)
	if err := o.UnmarshalJSON(body); err != nil {
		return object{}, apierrors.NewBadRequest(err.Error())
	}
	return put(p, o)
}

func removed(p objectPath, o object) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: o.GetName(), Group: p.Group, Kind: p.Resource, UID: o.GetUID()},
	}
}

// readBody returns a body as JSON; YAML is accepted as well.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", large.Limit))
	}
	if err == nil && r.Header.Get("Content-Type") == "application/yaml" {
		body, err = yaml.YAMLToJSON(body)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return body, nil
}

func writeList(w http.ResponseWriter, s *store, sel selection) {
	objects, revision := s.list(sel)
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q},"items":[`,
		sel.kind+"List", sel.GroupVersion(), strconv.Itoa(revision))
	for i, o := range objects {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(o.json)
	}
	b.WriteString("]}")
	send(w, http.StatusOK, b.Bytes())
}

func send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body[:len(body):len(body)], '\n'))
}

func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	send(w, status, body)
}

// refuse answers with an error in the API's format.
func refuse(w http.ResponseWriter, err error) {
	if errors.Is(err, errNoPath) {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	status := statusOf(err)
	answer(w, int(status.Code), status)
}

// statusOf returns the API's status for an error.
func statusOf(err error) metav1.Status {
	known := apierrors.APIStatus(nil)
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	return status
}

func newStatusError(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}
