package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rationhq/ration/policy"
)

// heartbeatInterval is how often an instance says that it lives: five times
// before it would be lost.
const heartbeatInterval = time.Second

// arrivalsMax bounds the versions whose way here is still to be told, while the
// store cannot be: what is beyond is not.
const arrivalsMax = 1000

// instances is the store as an instance tells it of itself.
type instances interface {
	Confirm(ctx context.Context, instance *policy.Instance) error
	Leave(ctx context.Context, id policy.InstanceID) error
}

// heartbeat tells the store that this instance lives, and which generation of
// the policy set is in force in it.
type heartbeat struct {
	store       instances
	log         *slog.Logger
	propagation prometheus.Histogram
	kick        chan struct{} // holds one wish to tell at once

	mu         sync.Mutex
	generation int64 // 0 before the first policies are in force
	arrivals   []arrival

	// run's own.
	self policy.Instance
}

// arrival is a version that has come into force here.
type arrival struct {
	installedAtMicros int64     // on the store's clock
	inForceAt         time.Time // on ours
}

// newHeartbeat makes the heartbeat of an instance of a name, "" for the
// machine's.
func newHeartbeat(store instances, name string, log *slog.Logger, registry prometheus.Registerer) (*heartbeat, error) {
	machine, _ := os.Hostname() // only a name for people
	h := &heartbeat{
		store: store, log: log, kick: make(chan struct{}, 1),
		propagation: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "ration_policy_propagation_seconds",
			Help:    "From the installation of a policy's version until it was in force in this instance, by the store's clock.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		self: policy.Instance{Name: cmp.Or(name, machine, "unnamed"), Version: readBuild().version},
	}
	_, _ = rand.Read(h.self.ID[:]) // it never fails
	return h, registry.Register(h.propagation)
}

// inForce notes that a generation is in force here; see [limiter.InForce].
func (h *heartbeat) inForce(generation int64, installedAtMicros []int64) {
	h.mu.Lock()
	h.generation = generation
	now := time.Now()
	for _, at := range installedAtMicros[:min(len(installedAtMicros), arrivalsMax-len(h.arrivals))] {
		h.arrivals = append(h.arrivals, arrival{at, now})
	}
	h.mu.Unlock()
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// run tells the store at once when a generation is in force, and every second,
// until ctx ends; then it leaves. A store that is away only has it try again.
func (h *heartbeat) run(ctx context.Context) error {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for failed := false; ; {
		select {
		case <-ctx.Done():
			h.leave(ctx)
			return nil
		case <-h.kick:
		case <-ticker.C:
		}
		err := h.beat(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			h.log.WarnContext(ctx, "the store does not learn that this instance lives", "error", err)
		} else if err == nil && failed {
			h.log.InfoContext(ctx, "the store learns again that this instance lives")
		}
		failed = err != nil
	}
}

// beat tells the store once.
func (h *heartbeat) beat(ctx context.Context) error {
	h.mu.Lock()
	arrivals := h.arrivals
	h.self.Generation = h.generation
	h.mu.Unlock()
	if h.self.Generation == 0 {
		return nil // it decides nothing yet
	}
	sentAt := time.Now()
	if err := h.store.Confirm(ctx, &h.self); err != nil {
		return err
	}
	for _, a := range arrivals {
		inForceAtMicros := h.self.SeenAtMicros - sentAt.Sub(a.inForceAt).Microseconds()
		h.propagation.Observe(max(0, time.Duration(inForceAtMicros-a.installedAtMicros)*time.Microsecond).Seconds())
	}
	h.mu.Lock()
	h.arrivals = h.arrivals[len(arrivals):]
	h.mu.Unlock()
	return nil
}

// leave says that nobody has to wait for this instance any more.
func (h *heartbeat) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), upkeepMax/2)
	defer cancel()
	if err := h.store.Leave(ctx, h.self.ID); err != nil {
		h.log.WarnContext(ctx, "this instance stays listed until it counts as lost", "error", err)
	}
}
