package pod

import (
	"strings"
	"testing"
	"time"
)

func TestRead(t *testing.T) {
	const head = "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {hostNetwork: true, "
	const container = "{name: c, image: i, command: [x]"
	for in, want := range map[string]string{
		head + "containers: [" + container + "}]}}":                                             "",
		head + "containers: [" + container + ", comand: [y]}]}}":                                `unknown field "comand"`,
		head + "containers: [" + container + ", lifecycle: {}}]}}":                              "lifecycle is not supported",
		head + "containers: [" + container + ", volumeMounts: [{name: v, mountPath: /v}]}]}}":   "c mounts unknown volume v",
		head + "containers: [" + container + "}], volumes: [{name: v, configMap: {name: m}}]}}": "the kind of volume v is not supported",
		head + "restartPolicy: Never, containers: [" + container + "}]}}":                       "restartPolicy Never is not supported",
		head + "containers: []}}": "no containers",
		"{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [" + container + "}]}}":                    "a network of its own is not supported",
		head + "containers: [{name: c, image: i}]}}":                                                                    "the image's own command is not supported",
		head + "containers: [" + container + ", env: [{name: E, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]}]}}": "source of E is not supported",
	} {
		_, err := Read([]byte(in))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

func TestBackOff(t *testing.T) {
	b := kubeletBackOff()
	var r restarts
	now := time.Unix(0, 0)
	for i, want := range []time.Duration{0, 10, 20, 40, 80, 160, 300, 300} {
		at := b.next(&r, now)
		if at.Sub(now) != want*time.Second {
			t.Errorf("restart %d after %v, want %v", i+1, at.Sub(now), want*time.Second)
		}
		now = at
	}
	now = now.Add(11 * time.Minute)
	if at := b.next(&r, now); at != now {
		t.Errorf("after 11 minutes the restart is %v later", at.Sub(now))
	}
}
