package main

import (
	"log/slog"
	"time"

	"github.com/rationhq/ration/httpapi"
)

// Bounds of the configuration. They only catch slips of the keyboard.
const (
	lanesMax    = 64        // of one durability; each is a connection
	queueBound  = 1_000_000 // calls of one lane, some 300 bytes each
	batchBound  = 1024      // what one call of the stored functions accepts
	timeoutsMax = time.Minute
)

// databaseConfig says where the store is.
type databaseConfig struct {
	DatabaseURL string `env:"RATION_DATABASE_URL" help:"PostgreSQL, as a URL or key=value string; required"`
}

func (c *databaseConfig) check(found *faults) {
	if c.DatabaseURL == "" {
		found.notef("RATION_DATABASE_URL", "is not set: it names the PostgreSQL database, as in postgres://user@host/ration")
	}
}

// serviceConfig is everything of the service but its store.
type serviceConfig struct {
	Listen addresses

	DecisionTimeout time.Duration       `env:"RATION_DECISION_TIMEOUT" envDefault:"50ms"                         help:"bounds a caller's wait for a decision"`
	CallTimeout     time.Duration       `env:"RATION_CALL_TIMEOUT"     envDefault:"250ms"                        help:"a call of the store without an answer for so long loses its connection"`
	Lanes           int                 `env:"RATION_LANES"            envDefault:"2"                            help:"lanes, each a connection, for fast policies, and as many for durable ones"`
	QueueMax        int                 `env:"RATION_QUEUE_MAX"        envDefault:"8192"                         help:"requests that may wait in a lane; beyond it 503 overloaded"`
	BatchMax        int                 `env:"RATION_BATCH_MAX"        envDefault:"256"                          help:"keys in one call of the store, at most 1024"`
	Jitter          float64             `env:"RATION_JITTER"           envDefault:"0.10"                         help:"share by which Retry-After may be lengthened, 0 to 1"`
	ResetHeader     httpapi.ResetHeader `env:"RATION_RESET_HEADER"     envDefault:"delta"                        help:"X-RateLimit-Reset: delta, epoch or off"`
	ProblemBase     string              `env:"RATION_PROBLEM_BASE"     envDefault:"https://ration.dev/problems/" help:"start of every problem type"`
	LogLevel        slog.Level          `env:"RATION_LOG_LEVEL"        envDefault:"info"                         help:"debug, info, warn or error"`
}

func (c *serviceConfig) check(found *faults) {
	c.Listen.check(found)
	timeout := func(variable string, value time.Duration) {
		if value <= 0 || value > timeoutsMax {
			found.notef(variable, "is %s and must be above 0 and at most %s", value, timeoutsMax)
		}
	}
	number := func(variable string, value, valueMax int) {
		if value < 1 || value > valueMax {
			found.notef(variable, "is %d and must be 1 to %d", value, valueMax)
		}
	}
	timeout("RATION_DECISION_TIMEOUT", c.DecisionTimeout)
	timeout("RATION_CALL_TIMEOUT", c.CallTimeout)
	number("RATION_LANES", c.Lanes, lanesMax)
	number("RATION_QUEUE_MAX", c.QueueMax, queueBound)
	number("RATION_BATCH_MAX", c.BatchMax, batchBound)
	if !(c.Jitter >= 0 && c.Jitter <= 1) { // written so that NaN is refused
		found.notef("RATION_JITTER", "is %v and must be 0 to 1", c.Jitter)
	}
	found.checkURL("RATION_PROBLEM_BASE", c.ProblemBase)
}
