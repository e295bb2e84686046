package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/day2/adopt"
	"github.com/vipgen/vipgen/render"
)

// Limits of the input, in bytes: of all objects, and of a node's output.
const (
	maxObjects = 1 << 30
	maxNode    = 16 << 20
)

// nodesAtOnce is the number of nodes that are queried in parallel.
const nodesAtOnce = 8

// errForbidden is the error of a user without a required right.
var errForbidden = errors.New("a right is missing")

func readError(what string, f *clientFailure) error {
	if f.forbidden() {
		return fmt.Errorf("%s: %w: %w", what, errForbidden, f)
	}
	return fmt.Errorf("%s: %w", what, f)
}

// objects returns the objects that `vipgen adopt` reads, as YAML, and the kinds that the
// API server does not have.
func (c *kubeClient) objects(ctx context.Context) (data []byte, missing []string, err error) {
	kinds := strings.Split(adopt.Kinds, ",")
	for {
		data, f := c.run(ctx, maxObjects, true, "get", strings.Join(kinds, ","), "--output=yaml")
		if f == nil {
			return data, missing, nil
		}
		lacks := f.lacks()
		i := slices.IndexFunc(kinds, func(k string) bool { return k == lacks || strings.HasPrefix(k, lacks+".") })
		if lacks == "" || i < 0 || len(kinds) == 1 {
			return nil, nil, readError("reading the cluster's objects", f)
		}
		missing = append(missing, kinds[i])
		kinds = slices.Delete(kinds, i, i+1)
	}
}

// nodes returns the Nodes as JSON, and their names.
func (c *kubeClient) nodes(ctx context.Context) (data []byte, names []string, err error) {
	data, f := c.run(ctx, maxObjects, true, "get", "nodes", "--output=json")
	if f != nil {
		return nil, nil, readError("reading the Nodes", f)
	}
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, nil, fmt.Errorf("reading the Nodes: %w", err)
	}
	for _, n := range list.Items {
		if v1alpha1.ValidName(n.Metadata.Name) { // else no valid file name
			names = append(names, n.Metadata.Name)
		}
	}
	slices.Sort(names)
	return data, names, nil
}

// namespace returns the namespace of vipgen's pods, by the cluster's platform. Clusters without
// an Infrastructure object have that of the platform none.
func (c *kubeClient) namespace(ctx context.Context) (string, error) {
	platform, f := c.run(ctx, maxNode, false, "get", "infrastructure.config.openshift.io", "cluster", "--output=jsonpath={.status.platformStatus.type}")
	if f != nil && f.lacks() == "" {
		return "", fmt.Errorf("%w\nTo do without it: --namespace, the one of the pods keepalived-NODE", readError("reading the platform", f))
	}
	return render.PodNamespace(strings.ToLower(string(platform))), nil
}

// agentAnswer holds the output of vipgen-agent on a node, or the error.
type agentAnswer struct {
	node string
	data []byte
	err  error
}

// ask runs vipgen-agent on nodes, each up to a time limit, and returns their answers in the order of
// the nodes. It fails if a right is missing, as that affects all
// nodes.
func (c *kubeClient) ask(ctx context.Context, namespace string, nodes []string, most time.Duration, args ...string) ([]agentAnswer, error) {
	answers, forbidden := make([]agentAnswer, len(nodes)), make([]*clientFailure, len(nodes))
	free := make(chan struct{}, nodesAtOnce)
	var group sync.WaitGroup
	for i, node := range nodes {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			ctx, end := context.WithTimeoutCause(ctx, most, fmt.Errorf("no answer within %v", most))
			defer end()
			data, f := c.askNode(ctx, namespace, node, args)
			if answers[i] = (agentAnswer{node: node, data: data}); f != nil {
				answers[i].err = f
			}
			if f != nil && f.forbidden() {
				forbidden[i] = f
			}
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(forbidden, func(f *clientFailure) bool { return f != nil }); i >= 0 {
		return nil, readError("asking the nodes' agents", forbidden[i])
	}
	return answers, nil
}

// askNode runs vipgen-agent in the pod keepalived of a node, or bgp on a node without. Events are the
// records of both pods.
func (c *kubeClient) askNode(ctx context.Context, namespace, node string, args []string) (all []byte, first *clientFailure) {
	for _, pod := range []string{"keepalived", "bgp"} {
		line := append([]string{"exec", "--namespace=" + namespace, pod + "-" + node, "--container=" + pod, "--", "/vipgen/vipgen-agent"}, args...)
		data, f := c.run(ctx, maxNode, false, line...)
		switch {
		case f == nil:
			all = append(all, data...)
			if args[0] != "events" {
				return all, nil
			}
		case !f.notFound():
			return nil, f
		case first == nil:
			first = f
		}
	}
	if all != nil {
		return all, nil
	}
	return nil, first
}
