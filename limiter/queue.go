package limiter

import (
	"slices"
	"sync"
)

// queue is what waits for a lane: bounded, and in order of arrival, but for
// what has been here before. Callers push and the lane takes.
type queue struct {
	max      int
	mu       sync.Mutex
	returns  []*call // matched again: before all else
	arrivals []*call
	waiting  int  // returns, arrivals, backlog and what is parked
	closed   bool // no call comes any more
	wake     chan struct{}
	backlog  []*call // the lane's own: taken from arrivals, not sent yet
}

// push queues calls in order and gives how many found room: the first ones.
func (q *queue) push(calls ...*call) int {
	q.mu.Lock()
	room := min(len(calls), q.max-q.waiting)
	if q.closed {
		room = 0
	}
	q.arrivals = append(q.arrivals, calls[:room]...)
	q.waiting += room
	q.mu.Unlock()
	if room > 0 {
		q.signal()
	}
	return room
}

// pushAgain queues calls that a lane gave back to be matched again, in front:
// a change of policies costs nobody his place, nor is there no room for him. It
// gives how many are queued: all of them, or none in a closed queue.
func (q *queue) pushAgain(calls ...*call) int {
	q.mu.Lock()
	if q.closed {
		calls = nil
	}
	q.returns = append(q.returns, calls...)
	q.waiting += len(calls)
	q.mu.Unlock()
	if len(calls) > 0 {
		q.signal()
	}
	return len(calls)
}

// signal wakes the lane, if it is not awake or about to be.
func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// close lets no further call in; the lane ends when what waits is decided.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

// collect moves what has arrived behind what waits, what came back before it,
// and says whether anything waits.
func (q *queue) collect() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.backlog) == 0 {
		q.backlog, q.arrivals = q.arrivals, q.backlog
	} else {
		q.backlog = append(q.backlog, q.arrivals...)
		clear(q.arrivals)
		q.arrivals = q.arrivals[:0]
	}
	if len(q.returns) > 0 {
		q.backlog = slices.Insert(q.backlog, 0, q.returns...)
		clear(q.returns)
		q.returns = q.returns[:0]
	}
	return len(q.backlog) > 0
}

// taken makes room in the queue.
func (q *queue) taken(n int) {
	q.mu.Lock()
	q.waiting -= n
	q.mu.Unlock()
}

// takenBack counts a call among those that wait once more, where there is
// room: also in a closed queue, which ends when nothing waits.
func (q *queue) takenBack() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting >= q.max {
		return false
	}
	q.waiting++
	return true
}

// finished says whether nothing waits and nothing can come.
func (q *queue) finished() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed && q.waiting == 0
}
