package limiter

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rationhq/ration/policy"
)

// pollInterval backs up the notifications of policy changes.
const pollInterval = 10 * time.Second

// loadTimeout bounds one load: the set in force stays until the next try.
const loadTimeout = 5 * time.Second

// inForce is a compiled policy set with the metrics of its policies. It is
// swapped whole.
type inForce struct {
	*policy.Set
	counters map[*policy.Installed]*policyCounters
}

// follower keeps the policy set in force as the store has it.
type follower struct {
	source  Policies
	log     *slog.Logger
	metrics *Metrics
	current atomic.Pointer[inForce]
	kick    chan struct{} // holds one wish to load

	mu      sync.Mutex
	swapped chan struct{} // closed by the next swap

	installed map[int32]*policy.Installed // run's own
}

func newFollower(config *Config) *follower {
	return &follower{
		source:    config.Policies,
		log:       config.Logger,
		metrics:   config.Metrics,
		kick:      make(chan struct{}, 1),
		swapped:   make(chan struct{}),
		installed: make(map[int32]*policy.Installed),
	}
}

// run loads at once, when kicked, and at every poll, until ctx ends.
func (f *follower) run(ctx context.Context) {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		if err := f.load(ctx); err != nil && ctx.Err() == nil {
			f.log.WarnContext(ctx, "loading policies failed; the set in force stays", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-f.kick:
		case <-poll.C:
		}
	}
}

// refresh asks for a load soon; it never waits.
func (f *follower) refresh() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// load brings the set in force up to the store's generation.
func (f *follower) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	since := int64(0)
	if current := f.current.Load(); current != nil {
		since = current.Generation()
	}
	generation, changed, err := f.source.Load(ctx, since)
	if err == nil && generation < since {
		// Another store, or one restored from a backup: nothing that is known here holds there.
		clear(f.installed)
		generation, changed, err = f.source.Load(ctx, 0)
	}
	if err != nil || generation == since {
		return err
	}
	for _, installed := range changed {
		f.installed[installed.Number] = installed
	}
	all := make([]*policy.Installed, 0, len(f.installed))
	for _, installed := range f.installed {
		all = append(all, installed)
	}
	f.swap(policy.Compile(generation, all))
	f.log.InfoContext(ctx, "policies in force", "generation", generation, "policies", len(all), "changed", len(changed))
	return nil
}

// swap puts a set in force and wakes who waits for another one.
func (f *follower) swap(set *policy.Set) {
	f.current.Store(&inForce{Set: set, counters: f.metrics.installed(set)})
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.swapped)
	f.swapped = make(chan struct{})
}

// other waits until the set in force is of another generation than the given
// one, and says whether that came before the deadline and before gone is
// closed.
func (f *follower) other(generation int64, deadline time.Time, gone <-chan struct{}) bool {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	for {
		f.mu.Lock()
		swapped := f.swapped
		f.mu.Unlock()
		if current := f.current.Load(); current != nil && current.Generation() != generation {
			return true
		}
		f.refresh()
		select {
		case <-swapped:
		case <-timer.C:
			return false
		case <-gone:
			return false
		}
	}
}
