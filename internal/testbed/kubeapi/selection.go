package kubeapi

import (
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// selection holds the objects that a request selects from a collection.
type selection struct {
	objectPath
	labels labels.Selector
	fields fields.Selector
}

// selectable are the supported field selectors with the path of each field.
var selectable = map[string][]string{
	"metadata.name":      {"metadata", "name"},
	"metadata.namespace": {"metadata", "namespace"},
	"spec.nodeName":      {"spec", "nodeName"},
}

// newSelection parses labelSelector and fieldSelector. A request for one object selects that
// object from its collection.
func newSelection(p objectPath, query url.Values) (s selection, err error) {
	s.objectPath = p
	if s.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return s, apierrors.NewBadRequest(strings.TrimPrefix(err.Error(), "unable to parse requirement: "))
	}
	if s.fields, err = fields.ParseSelector(query.Get("fieldSelector")); err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	for _, r := range s.fields.Requirements() {
		if selectable[r.Field] == nil || r.Field == "spec.nodeName" && p.kind != "Pod" {
			return s, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", r.Field))
		}
	}
	if p.name != "" {
		s.fields = fields.AndSelectors(s.fields, fields.OneTermEqualSelector("metadata.name", p.name))
	}
	return s, nil
}

func (s selection) has(o object) bool {
	if o.Unstructured == nil || s.namespace != "" && o.GetNamespace() != s.namespace {
		return false
	}
	return s.labels.Matches(labels.Set(o.GetLabels())) && s.fields.Matches(objectFields{o.Unstructured})
}

// event converts a change for watches of the selection: an object that starts to match is
// added, and one that no longer matches is deleted. It returns false if the change does not
// concern them.
func (s selection) event(e event) (kind watch.EventType, o object, ok bool) {
	if e.resource != s.resource {
		return "", o, false
	}
	was, is := s.has(e.before), e.kind != watch.Deleted && s.has(e.now)
	switch {
	case was && is:
		return watch.Modified, e.now, true
	case is:
		return watch.Added, e.now, true
	case !was:
		return "", o, false
	}
	// In its last state as part of the selection.
	o, err := revised(e.before.DeepCopy(), e.revision)
	return watch.Deleted, o, err == nil
}

// objectFields are the fields of an object, for selectors.
type objectFields struct{ *unstructured.Unstructured }

// Has implements fields.Fields.
func (f objectFields) Has(field string) bool {
	_, ok, _ := unstructured.NestedString(f.Object, selectable[field]...)
	return ok
}

// Get implements fields.Fields.
func (f objectFields) Get(field string) string {
	value, _, _ := unstructured.NestedString(f.Object, selectable[field]...)
	return value
}
