package machine

import (
	"context"
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testbed/authority"
)

const (
	kubeletConfig = "/etc/kubernetes/kubelet.conf"
	kubeletPKI    = "/var/lib/kubelet/pki/kubelet-server"
	kubeletURL    = "https://127.0.0.1:10250"
)

//go:embed kubelet.yaml
var kubeletText string

// KubeletConfig configures StartKubelet.
type KubeletConfig struct {
	// CA signs all certificates.
	CA *authority.Authority
	// Kubeconfig is a file of the machine; if it is empty, kubelet runs standalone. If the file is
	// missing, kubelet creates it, with a certificate that it requests with the kubeconfig
	// Bootstrap.
	Kubeconfig, Bootstrap string
	// NodeIPs are the node's addresses; if there are none, kubelet chooses one.
	NodeIPs []netip.Addr
	// Labels are the labels that it sets on its Node.
	Labels []string
}

// Kubelet is a running kubelet.
type Kubelet struct {
	*Service
	client *http.Client
}

// StartKubelet starts the machine's program "kubelet", with configuration and certificates as an
// installer writes them, and returns when it is healthy. Containerd must run.
func (m *Machine) StartKubelet(ctx context.Context, cfg KubeletConfig) (*Kubelet, error) {
	client, err := m.prepareKubelet(cfg.CA)
	if err != nil {
		return nil, fmt.Errorf("preparing kubelet of %s: %w", m.Name, err)
	}
	s, err := m.Start("kubelet", cfg.args()...)
	if err != nil {
		return nil, err
	}
	k := &Kubelet{s, client}
	return k, s.await(ctx, s.name, func(ctx context.Context) error {
		_, err := k.get(ctx, "/healthz")
		return err
	})
}

func (c KubeletConfig) args() []string {
	args := []string{"--config", kubeletConfig}
	if c.Kubeconfig != "" {
		args = append(args, "--kubeconfig", c.Kubeconfig)
	}
	if c.Bootstrap != "" {
		args = append(args, "--bootstrap-kubeconfig", c.Bootstrap)
	}
	if len(c.NodeIPs) > 0 {
		args = append(args, "--node-ip", lists.Join(c.NodeIPs, ","))
	}
	if len(c.Labels) > 0 {
		args = append(args, "--node-labels", strings.Join(c.Labels, ","))
	}
	return args
}

// prepareKubelet writes kubelet's files, and returns a client of kubelet's API.
func (m *Machine) prepareKubelet(ca *authority.Authority) (*http.Client, error) {
	serving, err := ca.Serving(m.Name)
	if err != nil {
		return nil, err
	}
	pair, err := ca.Client("admin", "system:masters")
	if err != nil {
		return nil, err
	}
	cert, err := pair.TLS()
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		m.Write(kubeletConfig, []byte(kubeletText)),
		m.Write("/etc/kubernetes/ca.crt", ca.CertPEM),
		m.Write(kubeletPKI+".crt", serving.Cert),
		m.WriteMode(kubeletPKI+".key", serving.Key, 0o600),
		m.MkdirAll("/etc/kubernetes/manifests"),
	)
	return &http.Client{Transport: &http.Transport{
		DialContext:     m.DialContext,
		TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{cert}, ServerName: m.Name},
	}}, err
}

// Pods returns kubelet's pods with the status that kubelet knows.
func (k *Kubelet) Pods(ctx context.Context) ([]corev1.Pod, error) {
	data, err := k.get(ctx, "/pods")
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("the pods of %s: %w", k.name, err)
	}
	return list.Items, nil
}

func (k *Kubelet) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, kubeletURL+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := k.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s says %s to %s: %s", k.name, resp.Status, path, data)
	}
	return data, err
}
