package limiter

import (
	"context"
	"sync"
	"time"

	"github.com/rationhq/ration/policy"
)

// lane is one queue, one goroutine and one session. A key always maps to the
// same lane, so that it is one row update however many callers ask.
type lane struct {
	durability policy.Durability
	session    Session
	metrics    *Metrics
	waitMax    time.Duration // how long a caller waits at most: what comes later helps nobody

	queueMax  int
	mu        sync.Mutex
	arrivals  []*call
	waiting   int  // arrivals and backlog
	closed    bool // no call comes any more
	wake      chan struct{}
	backlog   []*call // the lane's own: taken from arrivals, not sent yet
	gathering *gathering
	held      heldKeys
	apart     []group // of the batch in hand, what may still be held
	outage    outage

	until   time.Time // nobody waits longer for the batch in hand
	batch   policy.Batch
	answers policy.Answers
}

func newLane(durability policy.Durability, config *Config) *lane {
	return &lane{
		durability: durability,
		session:    config.NewSession(),
		metrics:    config.Metrics,
		waitMax:    config.DecisionTimeout,
		queueMax:   config.QueueMax,
		wake:       make(chan struct{}, 1),
		gathering:  newGathering(config.BatchAsksMax),
		outage:     outage{log: config.Logger},
	}
}

// push queues calls in order and gives how many found room: the first ones.
func (l *lane) push(calls ...*call) int {
	l.mu.Lock()
	room := min(len(calls), l.queueMax-l.waiting)
	if l.closed {
		room = 0
	}
	l.arrivals = append(l.arrivals, calls[:room]...)
	l.waiting += room
	l.mu.Unlock()
	if room > 0 {
		l.signal()
	}
	return room
}

// signal wakes the lane, if it is not awake or about to be.
func (l *lane) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// close lets no further call in; run ends when what waits is decided.
func (l *lane) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.signal()
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
		for l.collect() {
			before := len(l.backlog)
			groups, rest := l.gathering.take(l.backlog)
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
	l.gathering.release()
	clear(l.apart)
	l.apart = l.apart[:0]
}

// collect moves what has arrived behind what waits, and says whether anything
// does.
func (l *lane) collect() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.backlog) == 0 {
		l.backlog, l.arrivals = l.arrivals, l.backlog
	} else {
		l.backlog = append(l.backlog, l.arrivals...)
		clear(l.arrivals)
		l.arrivals = l.arrivals[:0]
	}
	return len(l.backlog) > 0
}

// taken makes room in the queue.
func (l *lane) taken(n int) {
	l.mu.Lock()
	l.waiting -= n
	l.mu.Unlock()
}

// finished says whether nothing waits and nothing can come.
func (l *lane) finished() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed && l.waiting == 0
}
