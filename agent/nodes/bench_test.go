package nodes

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// BenchmarkList2000 reads a list of 2,000 nodes of realistic size, and reports its size and how
// much of it stays in memory.
func BenchmarkList2000(b *testing.B) {
	var images, labels strings.Builder
	for i := range 50 {
		fmt.Fprintf(&images, `{"names":["quay.example.com/release@sha256:%064d"],"sizeBytes":%d},`, i, i)
	}
	for i := range 10 {
		fmt.Fprintf(&labels, `"feature.node.example.com/number-%d":"true",`, i)
	}
	var text strings.Builder
	text.WriteString(`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[`)
	for i := range 2000 {
		if i > 0 {
			text.WriteString(",")
		}
		n := node(fmt.Sprintf("worker-%04d.demo.example.com", i), labels.String()+`"node-role.kubernetes.io/worker":""`, "",
			internal(fmt.Sprintf("10.0.%d.%d", i/200, i%200+1)))
		text.WriteString(strings.Replace(n, `"images":[`, `"images":[`+images.String(), 1))
	}
	text.WriteString(`]}`)
	list := text.String()

	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	var kept float64
	for b.Loop() {
		before := heap()
		s := &store[nodeObject, *record]{
			keep: newRecord, same: (*record).equal, changed: func(bool) {}, items: map[string]*record{},
		}
		l, err := readList[nodeObject](io.NopCloser(strings.NewReader(list)))
		testkit.Must(b, err)
		var items []any
		for i := range l.(*listOfNodes).Items {
			items = append(items, &l.(*listOfNodes).Items[i])
		}
		s.Replace(items, "9")
		l, items = nil, nil
		records, stale, _ := s.get()
		snapshot := newSnapshot(records, "worker-0000.demo.example.com", testSpec(6443), stale, Bootstrap{})
		kept = heap() - before
		runtime.KeepAlive(snapshot)
		runtime.KeepAlive(s)
	}
	b.ReportMetric(float64(len(list))/(1<<20), "list-MiB")
	b.ReportMetric(kept/(1<<20), "kept-MiB")
}

type listOfNodes = list[nodeObject]
