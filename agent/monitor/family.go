package monitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Family is a metric with its labels, whose values are known when somebody asks
// and kept nowhere else.
type Family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// Gauge is a Family of values that go up and down. Its name ends in its unit, if
// it has one; help says what it is, in which unit.
func Gauge(name, help string, labels ...string) Family {
	return Family{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

// Counter is a Family of values that only go up; its name ends in _total.
func Counter(name, help string, labels ...string) Family {
	return Family{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue}
}

// Families are those of one collector.
type Families []Family

// Describe is part of prometheus.Collector.
func (f Families) Describe(to chan<- *prometheus.Desc) {
	for _, x := range f {
		to <- x.desc
	}
}

// Put hands a value to a collector's caller, with the values of the labels. One
// that cannot be shown fails alone.
func (f Family) Put(to chan<- prometheus.Metric, v float64, labels ...string) {
	m, err := prometheus.NewConstMetric(f.desc, f.kind, v, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(f.desc, err)
	}
	to <- m
}

// PutBool is Put of 1 or 0.
func (f Family) PutBool(to chan<- prometheus.Metric, v bool, labels ...string) {
	if v {
		f.Put(to, 1, labels...)
	} else {
		f.Put(to, 0, labels...)
	}
}

// PutTime is Put of a time as seconds since 1970; there is no value for no time.
func (f Family) PutTime(to chan<- prometheus.Metric, t time.Time, labels ...string) {
	if !t.IsZero() {
		f.Put(to, float64(t.UnixMilli())/1000, labels...)
	}
}
