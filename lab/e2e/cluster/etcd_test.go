package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func (n *node) etcdURL(port uint16) string {
	return "https://" + netip.AddrPortFrom(n.addr, port).String()
}

// startEtcd starts a member of etcd on the node: the first one, or one that joins others, all
// of which it must know.
func (n *node) startEtcd(state string, members []*node) {
	var peers []string
	for _, m := range members {
		peers = append(peers, m.Name+"="+m.etcdURL(2380))
	}
	certificate := func(prefix string) []string {
		return []string{
			"--" + prefix + "client-cert-auth", "--" + prefix + "trusted-ca-file=" + inControl("ca.crt"),
			"--" + prefix + "cert-file=" + inControl(etcd+".crt"), "--" + prefix + "key-file=" + inControl(etcd+".key"),
		}
	}
	args := []string{
		"--name=" + n.Name, "--data-dir=/var/lib/etcd", "--log-level=warn",
		"--listen-client-urls=https://0.0.0.0:2379", "--advertise-client-urls=" + n.etcdURL(2379),
		"--listen-peer-urls=https://0.0.0.0:2380", "--initial-advertise-peer-urls=" + n.etcdURL(2380),
		"--initial-cluster=" + strings.Join(peers, ","), "--initial-cluster-state=" + state,
		"--listen-metrics-urls=http://127.0.0.1:2381",
		// All disks are this machine's: written data survives the node's power.
		"--unsafe-no-fsync",
	}
	n.runStatic(static{
		name: etcd, data: "/var/lib/etcd", cpu: "300m",
		args:  append(append(args, certificate("")...), certificate("peer-")...),
		ready: corev1.HTTPGetAction{Host: "127.0.0.1", Path: "/readyz", Port: intstr.FromInt32(2381)},
	})
}

// etcdClient is a client of some members, which the caller must close.
func (c *cluster) etcdClient(members ...*node) *clientv3.Client {
	c.t.Helper()
	pair, err := c.ca.Client("root")
	c.must(err)
	certificate, err := pair.TLS()
	c.must(err)
	var endpoints []string
	for _, m := range members {
		endpoints = append(endpoints, m.etcdURL(2379))
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
		TLS: &tls.Config{RootCAs: c.ca.Pool(), Certificates: []tls.Certificate{certificate}},
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return c.client.DialContext(ctx, "tcp", addr)
		})},
	})
	c.must(err)
	return client
}

// joinEtcd makes a node a member of etcd, like etcd's operator: it replicates the data before
// it votes.
func (c *cluster) joinEtcd(n *node, members []*node) {
	c.t.Helper()
	client := c.etcdClient(members...)
	defer client.Close()
	var id uint64
	c.until("etcd to take "+n.Name+" in", func() bool { // refused while another one is new
		ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
		defer cancel()
		added, err := client.MemberAddAsLearner(ctx, []string{n.etcdURL(2380)})
		if err == nil {
			id = added.Member.ID
		}
		return err == nil
	})
	n.startEtcd("existing", append(members[:len(members):len(members)], n))
	c.until("etcd of "+n.Name+" to have what the others have", func() bool {
		ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
		defer cancel()
		_, err := client.MemberPromote(ctx, id)
		return err == nil
	})
}

// member returns the ID of a node's member of etcd.
func (c *cluster) member(client *clientv3.Client, name string) (id uint64) {
	c.t.Helper()
	c.patiently(func(ctx context.Context) error {
		list, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, m := range list.Members {
			if m.Name == name {
				id = m.ID
				return nil
			}
		}
		return fmt.Errorf("etcd has no member %s", name)
	})
	return id
}

// leaveEtcd removes a node's member.
func (c *cluster) leaveEtcd(n *node, remaining []*node) {
	c.t.Helper()
	client := c.etcdClient(remaining...)
	defer client.Close()
	id := c.member(client, n.Name)
	c.patiently(func(ctx context.Context) error {
		_, err := client.MemberRemove(ctx, id)
		return err
	})
}

// etcdLeader returns the node of the leading member.
func (c *cluster) etcdLeader() (leader *node) {
	c.t.Helper()
	client := c.etcdClient(c.masters...)
	defer client.Close()
	c.until("a leader of etcd", func() bool {
		for _, n := range c.masters {
			ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Second)
			status, err := client.Status(ctx, n.etcdURL(2379))
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				leader = n
				return true
			}
		}
		return false
	})
	return leader
}
