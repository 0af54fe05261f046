package limiter

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rationhq/ration/policy"
)

// pollInterval backs up the notifications of policy changes.
const pollInterval = 10 * time.Second

// loadTimeout bounds one load: the set in force stays until the next try.
const loadTimeout = 5 * time.Second

// retryInterval follows a load that failed: soon enough for requests that wait
// for the first policies, and no more often, whoever wishes, than an ailing
// store and the log can bear.
const retryInterval = 250 * time.Millisecond

// inForce is a compiled policy set with the metrics of its policies. It is
// swapped whole.
type inForce struct {
	*policy.Set

	numbered map[int32]*policy.Installed // by the store's number
	counters map[*policy.Installed]*policyCounters
	other    func() *policyCounters // of policies that are not in force
}

// numbered gives the policies of a set by number, the limits of their
// overrides among them.
func numbered(set *policy.Set) map[int32]*policy.Installed {
	all := make(map[int32]*policy.Installed, len(set.Policies()))
	for _, installed := range set.Policies() {
		all[installed.Number] = installed
		for _, override := range installed.Overrides {
			if override.Limited != nil {
				all[override.Limited.Number] = override.Limited
			}
		}
	}
	return all
}

// countersOf gives the counters of a policy in any version.
func (f *inForce) countersOf(installed *policy.Installed) *policyCounters {
	if known := f.numbered[installed.Number]; known != nil {
		return f.counters[known]
	}
	return f.other()
}

// follower keeps the policy set in force as the store has it.
type follower struct {
	source  Policies
	log     *slog.Logger
	metrics *Metrics
	tell    InForce
	current atomic.Pointer[inForce]
	kick    chan struct{} // holds one wish to look

	mu      sync.Mutex
	running *look // the one that has begun and not ended, nil where none has
	next    *look // the one that has not begun: who wishes now waits for it

	// run's own.
	known     int64 // the generation that installed is of, 0 when it is not complete
	installed map[int32]*policy.Installed
}

// look is one load as those see it who wait for it.
type look struct {
	ended chan struct{}
	err   error // read when ended is closed
}

func newLook() *look { return &look{ended: make(chan struct{})} }

func newFollower(config *Config) *follower {
	return &follower{
		source:    config.Policies,
		log:       config.Logger,
		metrics:   config.Metrics,
		tell:      config.InForce,
		kick:      make(chan struct{}, 1),
		next:      newLook(),
		installed: make(map[int32]*policy.Installed),
	}
}

// run looks at once, when kicked, and at every poll, until ctx ends.
func (f *follower) run(ctx context.Context) {
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	failed := false
	for {
		err := f.look(ctx)
		if ctx.Err() != nil {
			return
		}
		wait, kick := pollInterval, f.kick
		if err != nil {
			wait, kick = retryInterval, nil
		}
		if err != nil && !failed {
			f.log.WarnContext(ctx, "loading policies fails; the set in force stays", "error", err)
		} else if err == nil && failed {
			f.log.InfoContext(ctx, "loading policies works again")
		}
		failed = err != nil
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-kick:
		case <-timer.C:
		}
	}
}

// refresh asks for a look soon; it never waits.
func (f *follower) refresh() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// look loads and tells who waits for it.
func (f *follower) look(ctx context.Context) error {
	f.mu.Lock()
	look := f.next
	f.running, f.next = look, newLook()
	f.mu.Unlock()
	look.err = f.load(ctx)
	f.mu.Lock()
	f.running = nil
	f.mu.Unlock()
	close(look.ended)
	return look.err
}

// load brings the set in force up to the store's generation.
func (f *follower) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	generation, changed, err := f.source.Load(ctx, f.known)
	if err == nil && generation < f.known {
		// Another store, or one restored from a backup: nothing that is known here holds there.
		f.known = 0
		clear(f.installed)
		generation, changed, err = f.source.Load(ctx, 0)
	}
	if err != nil {
		return err
	}
	if generation == f.known && f.current.Load() != nil {
		return nil
	}
	arrived := f.arrivals(changed)
	f.known = generation
	for _, installed := range changed {
		if installed.Deleted {
			delete(f.installed, installed.Number)
		} else {
			f.installed[installed.Number] = installed
		}
	}
	set := policy.Compile(generation, slices.Collect(maps.Values(f.installed)))
	f.enforce(&inForce{Set: set, numbered: numbered(set), counters: f.metrics.installed(set), other: f.metrics.other}, arrived)
	f.log.InfoContext(ctx, "policies in force", "generation", generation, "policies", len(f.installed), "changed", len(changed))
	return nil
}

// other looks at the store's policies and says whether the set in force is now
// of another generation than the given one. The look under way may be what
// brings it, as after a notification; only one that began later says no. So do
// the deadline and the end of ctx.
func (f *follower) other(ctx context.Context, generation int64, deadline time.Time) bool {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	look := f.nextLook()
	for {
		underWay := f.underWay()
		if f.current.Load().Generation() != generation {
			return true
		}
		f.refresh() // after nextLook: no earlier look takes the wish away
		select {
		case <-underWay:
		case <-look.ended:
			if look.err == nil {
				return f.current.Load().Generation() != generation
			}
			look = f.nextLook()
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// underWay is closed when the look that has begun ends; nil where none has.
func (f *follower) underWay() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running == nil {
		return nil
	}
	return f.running.ended
}

// nextLook gives the look that has not begun.
func (f *follower) nextLook() *look {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}
