package limiter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"github.com/rationhq/ration/policy"
)

// Config is what a Limiter is made of. Every field is required.
type Config struct {
	NewSession         func() Session // one for each lane
	Policies           Policies
	InForce            InForce
	Reports            Reports
	Lanes              int           // lanes of each kind, at least 1: asks and claims, fast and durable
	QueueMax           int           // calls that may wait in one lane; beyond it the answer is overloaded at once
	BatchAsksMax       int           // keys in one call of the store, 1 to BatchAsksBound
	DecisionTimeout    time.Duration // bounds a caller's wait; the call to the store goes on
	OperationRetention time.Duration // how long the outcome of an operation id is kept at least, at least 1 µs
	Logger             *slog.Logger
	Metrics            *Metrics
}

// BatchAsksBound is how many keys one call of the stored functions accepts
// (guard_v1): no Config.BatchAsksMax is larger.
const BatchAsksBound = 1024

// check finds what New cannot work with.
func (c *Config) check() error {
	switch {
	case c.NewSession == nil || c.Policies == nil || c.InForce == nil || c.Reports == nil || c.Logger == nil || c.Metrics == nil:
		return errors.New("limiter: sessions, policies, who is told of them and of shadows, logger and metrics are required")
	case c.Lanes < 1 || c.QueueMax < 1 || c.DecisionTimeout <= 0:
		return errors.New("limiter: lanes, queue and decision timeout must be positive")
	case c.OperationRetention < time.Microsecond:
		return errors.New("limiter: outcomes of operation ids must be kept for some time")
	case c.BatchAsksMax < 1 || c.BatchAsksMax > BatchAsksBound:
		return fmt.Errorf("limiter: a batch must have 1 to %d keys", BatchAsksBound)
	}
	return nil
}

// Limiter decides requests. It is safe for use by any number of goroutines.
type Limiter struct {
	policies        *follower
	shadows         *shadows
	lanes           [kindCount][]*lane
	seed            maphash.Seed // of the general lanes' choice
	decisionTimeout time.Duration
	singles         sync.Pool // of *single
	manies          sync.Pool // of *many
}

// New makes a Limiter. It decides nothing before [Limiter.Run] has loaded the
// first policies.
func New(config Config) (*Limiter, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	l := &Limiter{
		policies: newFollower(&config), shadows: newShadows(&config), seed: maphash.MakeSeed(), decisionTimeout: config.DecisionTimeout,
	}
	for kind := range kind(kindCount) {
		for range config.Lanes {
			l.lanes[kind] = append(l.lanes[kind], newLane(kind, &config))
		}
	}
	return l, nil
}

// Run works until ctx ends; then it lets nothing further in, decides what
// waits, and returns nil. It is called once.
func (l *Limiter) Run(ctx context.Context) error {
	var lanes, followers sync.WaitGroup
	for _, of := range l.lanes {
		for _, lane := range of {
			lanes.Go(func() { lane.run(ctx) })
		}
	}
	followers.Go(func() { l.policies.run(ctx) })
	followers.Go(func() { l.shadows.run(ctx) })
	<-ctx.Done()
	for _, of := range l.lanes {
		for _, lane := range of {
			lane.close()
		}
	}
	lanes.Wait()
	followers.Wait()
	l.shadows.reportLast(ctx)
	return nil
}

// Refresh asks for a look at the store's policies soon.
func (l *Limiter) Refresh() { l.policies.refresh() }

// Loaded says whether the first policies are in force.
func (l *Limiter) Loaded() bool { return l.policies.current.Load() != nil }

// laneOf gives the lane of a key.
func (l *Limiter) laneOf(check *policy.Check) *lane {
	kind := fastAsks
	if check.Policy.Spec.Durability == policy.Durable {
		kind = durableAsks
	}
	lanes := l.lanes[kind]
	return lanes[binary.BigEndian.Uint32(check.Key[:])%uint32(len(lanes))] //nolint:gosec // a handful of lanes
}

// generalLaneOf gives the lane of a claim: one account's claims meet in one,
// so that they wait there in order and not for each other's rows.
func (l *Limiter) generalLaneOf(request *policy.Request, claim *claim) *lane {
	lanes := l.lanes[claim.kind()]
	return lanes[maphash.String(l.seed, firstIdentity(request))%uint64(len(lanes))]
}

// deadline is when a caller stops waiting: the earliest of the decision
// timeout, the request's own shorter wish and the context's.
func (l *Limiter) deadline(ctx context.Context, now time.Time, request *policy.Request) time.Time {
	wait := l.decisionTimeout
	if wish := time.Duration(request.DeadlineMillis) * time.Millisecond; wish > 0 {
		wait = min(wait, wish)
	}
	deadline := now.Add(wait)
	if outer, ok := ctx.Deadline(); ok && outer.Before(deadline) {
		return outer
	}
	return deadline
}
