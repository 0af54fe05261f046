package main

import (
	"log/slog"
	"runtime"
	"time"
	"unicode/utf8"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/policy"
)

// lanesByDefaultMax is where more lanes have not been measured to help.
const lanesByDefaultMax = 2

// Bounds of the configuration. They only catch slips of the keyboard.
const (
	lanesMax    = 64        // of one kind; each is a connection
	queueBound  = 1_000_000 // calls of one lane, some 300 bytes each
	timeoutsMax = time.Minute

	retentionMin = time.Second         // what a gateway needs to repeat anything at all
	retentionMax = 31 * 24 * time.Hour // each outcome is a row that is kept so long
)

// databaseConfig says where the store is.
type databaseConfig struct {
	DatabaseURL string `env:"RATION_DATABASE_URL" help:"PostgreSQL, as a URL or key=value string; required"`
}

func (c *databaseConfig) check(found *faults) {
	if c.DatabaseURL == "" {
		found.notef("RATION_DATABASE_URL", "is not set: it names the PostgreSQL database, as in postgres://user@host/ration")
		return
	}
	found.checkDatabase("RATION_DATABASE_URL", c.DatabaseURL)
}

// serviceConfig is everything of the service but its store.
type serviceConfig struct {
	Listen       addresses
	InstanceName string `env:"RATION_INSTANCE_NAME" help:"what installations call this instance (the machine's name)"`

	DecisionTimeout time.Duration       `env:"RATION_DECISION_TIMEOUT"    envDefault:"50ms"                         help:"bounds a caller's wait for a decision"`
	CallTimeout     time.Duration       `env:"RATION_CALL_TIMEOUT"        envDefault:"250ms"                        help:"a call of the store without an answer for so long loses its connection"`
	Lanes           int                 `env:"RATION_LANES"               envDefault:"0"                            help:"lanes of each of the four kinds, each lane a connection; 0: one for two processors, at most 2"`
	QueueMax        int                 `env:"RATION_QUEUE_MAX"           envDefault:"8192"                         help:"requests that may wait in a lane; beyond it 503 overloaded"`
	BatchMax        int                 `env:"RATION_BATCH_MAX"           envDefault:"256"                          help:"keys in one call of the store, at most 1024"`
	Retention       time.Duration       `env:"RATION_OPERATION_RETENTION" envDefault:"10m"                          help:"how long what was decided under an operation id is kept and replayed, 1s to 744h"`
	Jitter          float64             `env:"RATION_JITTER"              envDefault:"0.10"                         help:"share by which Retry-After may be lengthened, 0 to 1"`
	ResetHeader     httpapi.ResetHeader `env:"RATION_RESET_HEADER"        envDefault:"delta"                        help:"X-RateLimit-Reset: delta, epoch or off"`
	ProblemBase     string              `env:"RATION_PROBLEM_BASE"        envDefault:"https://ration.dev/problems/" help:"start of every problem type"`
	LogLevel        slog.Level          `env:"RATION_LOG_LEVEL"           envDefault:"info"                         help:"debug, info, warn or error"`
}

// lanes is the number of lanes to make. A second lane halves the batches, so
// that it pays only where it has a processor to itself: on two processors that
// also run PostgreSQL and the callers, two lanes decide a fifth less of single
// requests and half as much again of full batches
// (docs/internals/performance.md).
func (c *serviceConfig) lanes() int {
	if c.Lanes > 0 {
		return c.Lanes
	}
	return min(max(runtime.GOMAXPROCS(0)/2, 1), lanesByDefaultMax)
}

// check notes what cannot be, but for where it listens: that depends on who may
// come in there.
func (c *serviceConfig) check(found *faults) {
	timeout := func(variable string, value time.Duration) {
		if value <= 0 || value > timeoutsMax {
			found.notef(variable, "is %s and must be above 0 and at most %s", value, timeoutsMax)
		}
	}
	number := func(variable string, value, valueMin, valueMax int) {
		if value < valueMin || value > valueMax {
			found.notef(variable, "is %d and must be %d to %d", value, valueMin, valueMax)
		}
	}
	timeout("RATION_DECISION_TIMEOUT", c.DecisionTimeout)
	timeout("RATION_CALL_TIMEOUT", c.CallTimeout)
	number("RATION_LANES", c.Lanes, 0, lanesMax)
	number("RATION_QUEUE_MAX", c.QueueMax, 1, queueBound)
	number("RATION_BATCH_MAX", c.BatchMax, 1, limiter.BatchAsksBound)
	if c.Retention < retentionMin || c.Retention > retentionMax {
		found.notef("RATION_OPERATION_RETENTION", "is %s and must be %s to %s", c.Retention, retentionMin, retentionMax)
	}
	if !(c.Jitter >= 0 && c.Jitter <= 1) { // written so that NaN is refused
		found.notef("RATION_JITTER", "is %v and must be 0 to 1", c.Jitter)
	}
	if len(c.InstanceName) > policy.TextBytesMax || !utf8.ValidString(c.InstanceName) {
		found.notef("RATION_INSTANCE_NAME", "must be UTF-8 of at most %d bytes", policy.TextBytesMax)
	}
	found.checkURL("RATION_PROBLEM_BASE", c.ProblemBase)
}
