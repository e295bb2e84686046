package endpoint

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

const mostBody = 1 << 20

// askReady requests the server's readiness, and its liveness if it is not ready.
func (v *visit) askReady(ctx context.Context, conn *tls.Conn) {
	c := &http.Client{Transport: once(conn), Timeout: v.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer c.CloseIdleConnections()
	status, body, err := v.get(ctx, c, v.Path+"?verbose")
	switch {
	case err != nil && timedOut(err):
		v.find(codeHangs, fmt.Sprintf("%s does not answer %s within %v", v.Address, v.Path, v.Timeout),
			"the API server, or what it needs (etcd), hangs: look at its log on each control-plane node")
		return
	case err != nil:
		v.find(codeNotAnAPI, fmt.Sprintf("%s does not answer %s: %v", v.Address, v.Path, plain(err)),
			"not a Kubernetes API, or a load balancer that does not reach it: look at "+v.Path+" of each control-plane node by its own address")
		return
	}
	v.Ready = &Ready{Path: v.Path, Status: status, Failed: failedChecks(body)}
	switch status {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		v.findings = append(v.findings, Finding{Code: codeUnsaid, Address: v.Address.String(), Note: true,
			What: fmt.Sprintf("%s hides its readiness from anonymous clients (HTTP %d)", v.Address, status),
			Next: "an API server answers, which is all that can be seen from here; 'oc get --raw " + v.Path + "' asks as a user"})
	case http.StatusInternalServerError, http.StatusServiceUnavailable:
		v.notReady(ctx, c)
	default:
		v.find(codeNotAnAPI, fmt.Sprintf("%s answers %s with HTTP %d", v.Address, v.Path, status),
			"that is another service: see where the address leads, and the port")
	}
}

// notReady distinguishes a server that starts or ends from one that is broken.
func (v *visit) notReady(ctx context.Context, c *http.Client) {
	if v.Path != livez {
		if status, _, err := v.get(ctx, c, livez); err == nil {
			v.Ready.Live = status
		}
	}
	what := fmt.Sprintf("%s reports that it is not ready (HTTP %d)", v.Address, v.Ready.Status)
	if len(v.Ready.Failed) > 0 {
		what += ": " + strings.Join(v.Ready.Failed, ", ")
	}
	next := "look at the log of kube-apiserver on the control-plane nodes"
	switch {
	case len(v.Ready.Failed) == 1 && v.Ready.Failed[0] == "shutdown":
		next = "it shuts down. Wait; if it stays, look at the log of kube-apiserver on the control-plane nodes. A load balancer should not send clients to it"
	case v.Ready.Live == http.StatusOK:
		next = "it is live, so it starts, or lacks what the failed checks name. Wait; if it stays, " + next
	}
	v.find(codeNotReady, what, next)
}

const livez = "/livez"

func (v *visit) get(ctx context.Context, c *http.Client, path string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+v.authority()+path, nil)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("User-Agent", "vipgen")
	response, err := c.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostBody))
	return response.StatusCode, string(body), err
}

func (v *visit) authority() string { return net.JoinHostPort(v.ServerName, fmt.Sprint(v.Port)) }

// failedChecks returns the failed checks of /readyz?verbose, whose lines begin with "[-]".
func failedChecks(body string) (out []string) {
	for lines := bufio.NewScanner(strings.NewReader(body)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "[-]"); ok {
			name, _, _ := strings.Cut(rest, " ")
			out = append(out, name)
		}
	}
	return out
}

// once returns a transport on an existing connection. It reconnects where the server closes it.
func once(conn *tls.Conn) *http.Transport {
	used := false
	return &http.Transport{
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			if used {
				return nil, fmt.Errorf("the server has ended the connection: %w", io.EOF)
			}
			used = true
			return conn, nil
		},
	}
}
