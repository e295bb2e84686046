package client

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// startWatch starts an informer of the object of the events. It sends no request while its watch
// lasts, so that it detects a dead connection only by pings and keep-alives.
func startWatch(ctx context.Context, c *instance) error {
	client, dialer, err := c.client(c.from, "/api", corev1.SchemeGroupVersion, 0)
	if err != nil {
		return err
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client, "configmaps", namespace, fields.OneTermEqualSelector("metadata.name", eventsName)),
		ObjectType:    &corev1.ConfigMap{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { c.waits.complete(eventOf(o)) },
			UpdateFunc: func(_, o any) { c.waits.complete(eventOf(o)) },
		},
	})
	c.run(dialer, func() { informer.RunWithContext(ctx) })
	return nil
}

// eventOf returns the number of the last event of an object.
func eventOf(o any) int {
	m, ok := o.(*corev1.ConfigMap)
	if !ok {
		return 0
	}
	n, _ := strconv.Atoi(m.Data[eventKey]) // 0 before the first
	return n
}
