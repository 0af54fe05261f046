package limiter

import (
	"context"
	"time"
)

// lane is one queue, one goroutine and one session. A key always maps to the
// same lane, so that it is one row update however many callers ask; on the
// general path, where a claim has several keys, an account does.
type lane struct {
	queue

	kind    kind
	batcher batcher
	session Session
	metrics *Metrics
	waitMax time.Duration // how long a caller waits at most: what comes later helps nobody

	held    heldKeys
	apart   []group // of the batch in hand, what may still be held
	parking parking
	pace    pace
	rivals  rivals
	outage  outage

	until time.Time // nobody waits longer for the batch in hand
}

func newLane(kind kind, config *Config) *lane {
	return &lane{
		queue:   queue{max: config.QueueMax, wake: make(chan struct{}, 1)},
		kind:    kind,
		batcher: newBatcher(kind, config),
		session: config.NewSession(),
		metrics: config.Metrics,
		waitMax: config.DecisionTimeout,
		outage:  outage{log: config.Logger},
	}
}

// run decides what arrives until the lane is closed and empty. What waits is
// decided also when ctx has ended; connecting in advance ends with it.
func (l *lane) run(ctx context.Context) {
	defer l.session.Close()
	working := context.WithoutCancel(ctx)
	var retry <-chan time.Time
	for !l.finished() {
		select {
		case <-l.wake:
		case <-retry:
			retry = l.reconnect(ctx)
		}
		for l.unpark(); l.collect(); l.unpark() {
			before := len(l.backlog)
			groups, rest := l.batcher.take(l.backlog, l.pace.max())
			l.backlog = rest
			l.taken(before - len(rest))
			if len(groups) > 0 {
				l.decide(working, groups)
				l.release()
				retry = l.reconnect(ctx)
			}
		}
	}
}

// release lets go of the calls of the last batch.
func (l *lane) release() {
	l.batcher.release()
	clear(l.apart)
	l.apart = l.apart[:0]
}
