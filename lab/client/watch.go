package client

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// startWatch starts an informer of the object that events are made of. It makes no
// request while its watch lasts, so that it learns of a dead connection by pings and
// keep-alives alone.
func startWatch(ctx context.Context, c *starting) error {
	client, dialer, err := c.client(c.from, "/api", corev1.SchemeGroupVersion, 0)
	if err != nil {
		return err
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client, "configmaps", namespace, fields.OneTermEqualSelector("metadata.name", eventsName)),
		ObjectType:    &corev1.ConfigMap{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { c.waits.came(eventOf(o)) },
			UpdateFunc: func(_, o any) { c.waits.came(eventOf(o)) },
		},
	})
	c.run(dialer, func() { informer.RunWithContext(ctx) })
	return nil
}

// eventOf is the number of the event that made the object what it is.
func eventOf(o any) int {
	m, ok := o.(*corev1.ConfigMap)
	if !ok {
		return 0
	}
	n, _ := strconv.Atoi(m.Data[eventKey]) // 0 before the first
	return n
}
