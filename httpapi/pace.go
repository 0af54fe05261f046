package httpapi

import (
	"maps"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/rationhq/ration/policy"
)

// Bounds of what one operator asks besides reading. Every change has all
// instances load it, and a look ahead is as dear as a change.
const (
	changesPerSecond = 20
	changesBurst     = 500    // a folder of policies, planned and applied at once
	changersMax      = 10_000 // who are remembered; as many tokens as there may be
)

// pace bounds how often each operator asks for a change.
type pace struct {
	mu sync.Mutex
	by map[string]*rate.Limiter
}

// take counts a change of an operator's, or gives how long it has to wait.
func (p *pace) take(actor string, now time.Time) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of, known := p.by[actor]
	if !known {
		if len(p.by) >= changersMax {
			// Whoever has earned the whole burst back is as one who never came.
			maps.DeleteFunc(p.by, func(_ string, of *rate.Limiter) bool { return of.TokensAt(now) >= changesBurst })
		}
		if len(p.by) >= changersMax {
			return time.Second
		}
		if p.by == nil {
			p.by = make(map[string]*rate.Limiter)
		}
		of = rate.NewLimiter(changesPerSecond, changesBurst)
		p.by[actor] = of
	}
	reservation := of.ReserveN(now, 1)
	if wait = reservation.DelayFrom(now); wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// paced refuses what comes faster than it may.
func (p *pace) paced(r *http.Request, actor string) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	wait := p.take(actor, time.Now())
	if wait == 0 {
		return nil
	}
	return &tooFastError{wait: wait, cause: &policy.Error{
		Code: policy.CodeOverloaded, Reason: reasonTooManyChanges, Detail: "This operator asks for changes faster than they are made.",
	}}
}

// tooFastError is a too-many-changes that knows when one more is taken.
type tooFastError struct {
	cause *policy.Error
	wait  time.Duration
}

func (e *tooFastError) Error() string { return e.cause.Error() }
func (e *tooFastError) Unwrap() error { return e.cause }
