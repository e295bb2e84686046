package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// change repeatedly changes the address of a control-plane node, and measures from the API
// server's answer until the jobs' files have the address and their daemons were reloaded.
func (m *measurement) change(nodes int) {
	m.Helper()
	const moved = 1
	took := map[*job][]time.Duration{}
	for range changes {
		m.moves++
		address := fmt.Sprintf("192.168.111.%d", 100+m.moves)
		time.Sleep(apart)
		before := map[*job]int{}
		for _, j := range m.list {
			before[j] = j.applied()
		}
		m.patch(moved, map[string]any{"addresses": addresses(moved, address)})
		began := time.Now()
		waiting := slices.DeleteFunc(slices.Clone(m.list), func(j *job) bool { return j.names == "" })
		m.node.await("every job to follow", func() bool {
			waiting = slices.DeleteFunc(waiting, func(j *job) bool {
				// CoreDNS watches its hosts file.
				done := j.contains(j.names, address) && (j.names != j.conf || j.applied() > before[j])
				if done {
					took[j] = append(took[j], time.Since(began))
				}
				return done
			})
			return len(waiting) == 0
		})
	}
	for _, j := range m.list {
		if j.names != "" {
			m.times(fmt.Sprintf("%s: change of peers, %d nodes", j.name, nodes), took[j], time.Second)
		}
	}
}

// patch changes the status of a node as its kubelet does.
func (m *measurement) patch(i int, status map[string]any) {
	m.Helper()
	data, err := json.Marshal(map[string]any{"status": status})
	testkit.Must(m, err)
	m.api.Patch("/api/v1/nodes/"+nodeName(i)+"/status", data)
}

// contains reports whether a file of the node has a word.
func (n *node) contains(path, word string) bool {
	data, _ := os.ReadFile(n.Path(path))
	return slices.ContainsFunc([]string{" ", ":", "\n"}, func(end string) bool { return bytes.Contains(data, []byte(word+end)) })
}
