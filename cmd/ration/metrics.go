package main

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/rationhq/ration/pgstore"
)

// registerProcess registers what tells of the process itself: the Go runtime,
// the operating system's figures, the build, and the pool of connections.
func registerProcess(registry prometheus.Registerer, store *pgstore.Store) error {
	built := readBuild()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "ration_build_info",
		Help:        "Always 1; its labels say what runs.",
		ConstLabels: prometheus.Labels{"version": built.version, "revision": built.revision, "goversion": built.goVersion},
	})
	info.Set(1)
	return errors.Join(
		registry.Register(collectors.NewGoCollector()),
		registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
		registry.Register(info),
		registry.Register(newPoolCollector(store)),
	)
}

// poolCollector reads the state of the store's pool at every scrape.
type poolCollector struct {
	store *pgstore.Store

	connections, connectionsMax, acquires, waits, waitSeconds *prometheus.Desc
}

func newPoolCollector(store *pgstore.Store) *poolCollector {
	return &poolCollector{
		store: store,
		connections: prometheus.NewDesc("ration_pool_connections",
			"Connections of the pool for policies and upkeep, by state.", []string{"state"}, nil),
		connectionsMax: prometheus.NewDesc("ration_pool_connections_max",
			"Connections that the pool may have.", nil, nil),
		acquires: prometheus.NewDesc("ration_pool_acquires_total",
			"Connections taken from the pool.", nil, nil),
		waits: prometheus.NewDesc("ration_pool_waits_total",
			"Connections that had to be waited for.", nil, nil),
		waitSeconds: prometheus.NewDesc("ration_pool_wait_seconds_total",
			"Time spent waiting for connections.", nil, nil),
	}
}

// Describe gives the pool's metrics.
func (c *poolCollector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.connections, c.connectionsMax, c.acquires, c.waits, c.waitSeconds} {
		to <- desc
	}
}

// Collect gives the figures of now.
func (c *poolCollector) Collect(to chan<- prometheus.Metric) {
	stat := c.store.PoolStat()
	gauge := func(desc *prometheus.Desc, value int32, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	gauge(c.connections, stat.AcquiredConns(), "used")
	gauge(c.connections, stat.IdleConns(), "idle")
	gauge(c.connections, stat.ConstructingConns(), "connecting")
	gauge(c.connectionsMax, stat.MaxConns())
	to <- prometheus.MustNewConstMetric(c.acquires, prometheus.CounterValue, float64(stat.AcquireCount()))
	to <- prometheus.MustNewConstMetric(c.waits, prometheus.CounterValue, float64(stat.EmptyAcquireCount()))
	to <- prometheus.MustNewConstMetric(c.waitSeconds, prometheus.CounterValue, stat.EmptyAcquireWaitTime().Seconds())
}
