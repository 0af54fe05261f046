package devpg

import (
	"maps"
	"slices"
)

// settings are the server's settings for this work, with Config.Settings on
// top, as `-c name=value` arguments: they hold for this start, and the data
// folder's own files stay as initdb wrote them.
func settings(config Config) []string {
	merged := map[string]string{
		// A million buckets and their index are some 200 MB; they have to be in
		// memory for a decision to be. Memory is taken as it is touched.
		"shared_buffers": "256MB",
		"huge_pages":     "try", // fewer TLB misses on random keys, where the machine has them
		// Service, operator, a test's parallel pools and a margin for sessions
		// that were abandoned and are not noticed yet.
		"max_connections": "200",
		// A decision is one short call; compiling it takes longer than running it.
		"jit": "off",
		// Checkpoints come by time, not in the middle of a load run because its
		// log reached 1 GB. Each one makes the next change of a page log it whole.
		"max_wal_size":       "4GB",
		"checkpoint_timeout": "15min",
		"wal_compression":    "on", // of exactly those whole pages
		// Acknowledged means on disk: durable policies are measured and tried
		// out here, and a development figure must not flatter them.
		"fsync":              "on",
		"synchronous_commit": "on",
		// Every admitted decision leaves a dead row version. The default minute
		// between looks is ten million of them at full load.
		"autovacuum_naptime": "15s",
		// Decisions are bounded at 40 ms: who waits for a second is a fault to see.
		"log_lock_waits":  "on",
		"log_checkpoints": "off",
		"timezone":        "UTC",
		"log_timezone":    "UTC",
	}
	if config.Unsafe {
		maps.Copy(merged, map[string]string{
			"fsync":            "off",   // the test's folder does not survive the test
			"full_page_writes": "off",   // they protect against what fsync=off has given up
			"shared_buffers":   "64MB",  // several such servers stand side by side
			"max_wal_size":     "512MB", // and their folders too
		})
	}
	maps.Copy(merged, config.Settings)
	var arguments []string
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		arguments = append(arguments, "-c", name+"="+merged[name])
	}
	return arguments
}
