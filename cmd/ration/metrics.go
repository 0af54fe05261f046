package main

import (
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/rationhq/ration/pgstore"
)

// registerProcess registers what tells of the process itself: the Go runtime,
// the operating system's figures, the build, and the pools of connections.
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

// poolCollector reads the state of the store's pools at every scrape.
type poolCollector struct {
	store *pgstore.Store

	connections, connectionsMax, acquires, waits, waitSeconds *prometheus.Desc
}

func newPoolCollector(store *pgstore.Store) *poolCollector {
	return &poolCollector{
		store: store,
		connections: prometheus.NewDesc("ration_pool_connections",
			"Connections of a pool, by state.", []string{"pool", "state"}, nil),
		connectionsMax: prometheus.NewDesc("ration_pool_connections_max",
			"Connections that a pool may have.", []string{"pool"}, nil),
		acquires: prometheus.NewDesc("ration_pool_acquires_total",
			"Connections taken from a pool.", []string{"pool"}, nil),
		waits: prometheus.NewDesc("ration_pool_waits_total",
			"Connections that had to be waited for.", []string{"pool"}, nil),
		waitSeconds: prometheus.NewDesc("ration_pool_wait_seconds_total",
			"Time spent waiting for connections.", []string{"pool"}, nil),
	}
}

// Describe gives the pools' metrics.
func (c *poolCollector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.connections, c.connectionsMax, c.acquires, c.waits, c.waitSeconds} {
		to <- desc
	}
}

// Collect gives the figures of now.
func (c *poolCollector) Collect(to chan<- prometheus.Metric) {
	upkeep, operations := c.store.PoolStats()
	c.collect(to, "upkeep", upkeep)
	c.collect(to, "operations", operations)
}

func (c *poolCollector) collect(to chan<- prometheus.Metric, pool string, stat *pgxpool.Stat) {
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, kind, value, append([]string{pool}, labels...)...)
	}
	send(c.connections, prometheus.GaugeValue, float64(stat.AcquiredConns()), "used")
	send(c.connections, prometheus.GaugeValue, float64(stat.IdleConns()), "idle")
	send(c.connections, prometheus.GaugeValue, float64(stat.ConstructingConns()), "connecting")
	send(c.connectionsMax, prometheus.GaugeValue, float64(stat.MaxConns()))
	send(c.acquires, prometheus.CounterValue, float64(stat.AcquireCount()))
	send(c.waits, prometheus.CounterValue, float64(stat.EmptyAcquireCount()))
	send(c.waitSeconds, prometheus.CounterValue, stat.EmptyAcquireWaitTime().Seconds())
}
