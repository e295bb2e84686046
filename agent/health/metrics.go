package health

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts checks. A nil Metrics counts nothing.
type Metrics struct {
	healthy  *prometheus.GaugeVec
	duration *prometheus.HistogramVec
	failed   *prometheus.CounterVec
	changes  *prometheus.CounterVec
}

// buckets are upper bounds in seconds, from an answer out of memory to the longest
// time-out.
var buckets = []float64{0.001, 0.005, 0.025, 0.1, 0.3, 1, 3}

func NewMetrics() *Metrics {
	labels := []string{"check"}
	return &Metrics{
		healthy: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "vipgen_check_healthy", Help: "Whether the check counts as healthy (1) or not (0), after its rise and fall counts.",
		}, labels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vipgen_check_duration_seconds", Help: "How long one probe of the check took, failed ones and time-outs included, in seconds.",
			Buckets: buckets,
		}, labels),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vipgen_check_failures_total", Help: "Probes of the check that failed.",
		}, labels),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vipgen_check_changes_total", Help: "How often the check turned healthy or unhealthy, its first result not counted.",
		}, labels),
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.healthy, m.duration, m.failed, m.changes}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(to)
	}
}

func (m *Metrics) probed(check string, took time.Duration, err error) {
	if m == nil {
		return
	}
	m.duration.WithLabelValues(check).Observe(took.Seconds())
	failed := m.failed.WithLabelValues(check) // created at zero, so that an increase shows
	if err != nil {
		failed.Inc()
	}
}

func (m *Metrics) result(check string, healthy, first bool) {
	if m == nil {
		return
	}
	value := 0.0
	if healthy {
		value = 1
	}
	m.healthy.WithLabelValues(check).Set(value)
	changes := m.changes.WithLabelValues(check)
	if !first {
		changes.Inc()
	}
}

func (m *Metrics) ended(check string) {
	if m != nil {
		m.healthy.DeleteLabelValues(check)
	}
}
