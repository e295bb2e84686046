package monitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Family is a metric with labels whose values are computed at each collection.
type Family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// Gauge returns a Family of values that go up and down. Its name ends in its unit, if
// any; help describes it with the unit.
func Gauge(name, help string, labels ...string) Family {
	return Family{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

// Counter returns a Family of values that only go up; its name ends in _total.
func Counter(name, help string, labels ...string) Family {
	return Family{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue}
}

// Families are the families of one collector.
type Families []Family

// Describe implements prometheus.Collector.
func (f Families) Describe(to chan<- *prometheus.Desc) {
	for _, x := range f {
		to <- x.desc
	}
}

// Put sends a value with label values. An invalid value does not affect others.
func (f Family) Put(to chan<- prometheus.Metric, v float64, labels ...string) {
	m, err := prometheus.NewConstMetric(f.desc, f.kind, v, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(f.desc, err)
	}
	to <- m
}

// PutBool sends 1 or 0.
func (f Family) PutBool(to chan<- prometheus.Metric, v bool, labels ...string) {
	if v {
		f.Put(to, 1, labels...)
	} else {
		f.Put(to, 0, labels...)
	}
}

// PutTime sends a time in seconds since 1970, nothing for the zero time.
func (f Family) PutTime(to chan<- prometheus.Metric, t time.Time, labels ...string) {
	if !t.IsZero() {
		f.Put(to, float64(t.UnixMilli())/1000, labels...)
	}
}
