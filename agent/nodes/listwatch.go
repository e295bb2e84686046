package nodes

import (
	"context"
	"errors"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// listTimeout bounds the duration of a list from one server.
const listTimeout = time.Minute

// resource lists and watches objects of type T for a reflector.
type resource[T any] struct {
	client    *client
	name      string // such as "nodes"
	namespace string // empty for all
	selectors metav1.ListOptions
	refusals  refusals
	// reached is called with whether the API server vouches for the known state.
	reached func(bool)
	// identity is set if the known state tells whether the node is in the cluster: it is doubted sooner.
	identity bool
}

// IsWatchListSemanticsUnSupported makes the reflector list and then watch, as all
// releases of API servers support; readList needs no more memory.
func (r *resource[T]) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.ListerWatcher.
func (r *resource[T]) List(o metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(context.Background(), o)
}

// Watch implements cache.ListerWatcher.
func (r *resource[T]) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return r.WatchWithContext(context.Background(), o)
}

// ListWithContext implements cache.ListerWatcherWithContext.
func (r *resource[T]) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if r.refusals.refused {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(jittered(r.client.refused)):
		}
	}
	var list runtime.Object
	err := r.try(ctx, "list", func(c *rest.RESTClient, _ string) error {
		ctx, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		body, err := r.request(c, o).Stream(ctx)
		if err != nil {
			return err
		}
		defer body.Close()
		list, err = readList[T](body)
		return err
	})
	return list, err
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (r *resource[T]) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	var w watch.Interface
	err := r.try(ctx, "watch", func(c *rest.RESTClient, server string) error {
		raw, err := r.request(c, o).Watch(ctx)
		if err == nil && reflect.TypeOf(raw) == noWatch {
			err = errNoWatch
		}
		if err == nil {
			w = r.client.trackWatch(raw, server)
		}
		return err
	})
	return w, err
}

// noWatch is the type that client-go returns, without an error, for a server that does not answer in
// time or ends the connection (Request.Watch). It must not count as one that vouches for anything.
var noWatch = reflect.TypeOf(watch.NewEmptyWatch())

var errNoWatch = errors.New("no answer in time, or the connection ended")

// try sends a request to the servers, and records the outcome.
func (r *resource[T]) try(ctx context.Context, verb string, do func(*rest.RESTClient, string) error) error {
	settle := func() {}
	if r.identity {
		settle = r.client.doubt(func() { r.reached(false) })
	}
	err := r.client.try(ctx, do)
	settle()
	r.outcome(ctx, verb, err)
	return err
}

func (r *resource[T]) request(c *rest.RESTClient, o metav1.ListOptions) *rest.Request {
	o.LabelSelector, o.FieldSelector = r.selectors.LabelSelector, r.selectors.FieldSelector
	return c.Get().NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name).
		VersionedParams(&o, metav1.ParameterCodec).MaxRetries(0)
}

func (r *resource[T]) outcome(ctx context.Context, verb string, err error) {
	if ctx.Err() != nil && err != nil {
		return // the agent stops
	}
	r.refusals.record(verb, r.name, err)
	switch {
	case err == nil:
		r.reached(true)
	case !isRequestError(err) || apierrors.IsForbidden(err):
		r.reached(false)
	}
}

// reflectorPace is the interval between attempts. It does not grow: failures keeps the
// agent off failing servers, and a list waits after a refusal. client-go would remember
// for two minutes that the API was away, and delay the next change of server as much.
var reflectorPace = wait.Backoff{Duration: 250 * time.Millisecond, Jitter: 0.5}

// reflect keeps the store in step with the API until ctx ends. It silences client-go,
// because outcome logs failures once.
func (r *resource[T]) reflect(ctx context.Context, store cache.ReflectorStore, object runtime.Object) {
	ctx = klog.NewContext(ctx, klog.Logger{})
	quiet, pace := klog.Logger{}, reflectorPace
	cache.NewReflectorWithOptions(r, object, store, cache.ReflectorOptions{
		Logger: &quiet, Name: r.name, Backoff: &pace,
	}).RunWithContext(ctx)
}
