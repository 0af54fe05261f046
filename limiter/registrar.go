package limiter

import "github.com/prometheus/client_golang/prometheus"

// registrar makes metrics and registers each.
type registrar struct {
	registerer prometheus.Registerer
	errs       []error
}

func (r *registrar) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return register(r, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

func (r *registrar) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels))
}

func (r *registrar) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels))
}

// register registers a metric and gives it, also when that failed.
func register[Metric prometheus.Collector](r *registrar, metric Metric) Metric {
	if err := r.registerer.Register(metric); err != nil {
		r.errs = append(r.errs, err)
	}
	return metric
}
