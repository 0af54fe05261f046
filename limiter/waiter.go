package limiter

import (
	"sync/atomic"
	"time"
)

// waiter is one caller waiting for one or several calls.
type waiter struct {
	open  atomic.Int32  // calls that are not finished
	ready chan struct{} // holds one signal, when the last open call is finished
	timer *time.Timer
}

func newWaiter() *waiter {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &waiter{ready: make(chan struct{}, 1), timer: timer}
}

// finished is called once for each open call: by the lane when it is done, by
// the caller when he leaves.
func (w *waiter) finished() {
	if w.open.Add(-1) == 0 {
		w.ready <- struct{}{}
	}
}

// wait takes the signal that every call is finished, and says whether it came
// before the deadline and before gone is closed. If not, it is still to come.
func (w *waiter) wait(deadline time.Time, gone <-chan struct{}) bool {
	w.timer.Reset(time.Until(deadline))
	defer w.timer.Stop()
	select {
	case <-w.ready:
		return true
	case <-w.timer.C:
		return false
	case <-gone:
		return false
	}
}
