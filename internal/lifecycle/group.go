// Package lifecycle runs the long-running parts of a process as one: they
// start together, the first that ends takes the others with it, and nothing
// returns before everything has ended or used up its time.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrStopTimeout is in the error of a part that did not end in its time.
var ErrStopTimeout = errors.New("did not stop in time")

var errEndedUnasked = errors.New("ended unasked")

// Part is one long-running part of a process.
type Part struct {
	// Name is what errors call the part.
	Name string

	// Run does the work until it fails or its context ends, and returns when
	// everything it started has ended. It returns nil, or the context's error,
	// when it ended because it was asked to.
	Run func(ctx context.Context) error

	// Stop, when given, asks the part to end in good order: take nothing new,
	// finish what is begun. The context of Run ends when Stop returns, or at
	// once where there is no Stop.
	Stop func(ctx context.Context) error

	// StopMax bounds Stop and the return of Run together. Must be positive.
	StopMax time.Duration
}

// Run starts the parts in order and waits. When ctx ends or a part returns,
// the parts are stopped one after another in reverse order, so that what
// others rest on goes last. A part that ends unasked, even without an error,
// ends the whole.
//
// Run returns nil when ctx ended and every part stopped well, else the errors
// of all parts, joined, each with its part's name. A part that outlives its
// StopMax is reported with [ErrStopTimeout] and left behind: its goroutine
// still runs, so the caller should end the process.
func Run(ctx context.Context, parts ...Part) error {
	// The parts outlive ctx: each is ended in its turn.
	base := context.WithoutCancel(ctx)
	anyEnded := make(chan struct{})
	var once sync.Once
	ended := func() { once.Do(func() { close(anyEnded) }) }

	started := make([]*running, 0, len(parts))
	for _, part := range parts {
		started = append(started, start(base, part, ended))
	}

	select {
	case <-ctx.Done():
	case <-anyEnded:
	}

	var failures []error
	for _, part := range slices.Backward(started) {
		if err := part.stop(base); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", part.Name, err))
		}
	}
	return errors.Join(failures...)
}

// running is a started part.
type running struct {
	Part

	cancel context.CancelFunc
	done   chan struct{} // closed when Run has returned
	err    error         // what Run returned; read after done
}

// start runs a part in a goroutine of its own and calls ended when it returns.
func start(ctx context.Context, part Part, ended func()) *running {
	ctx, cancel := context.WithCancel(ctx)
	r := &running{Part: part, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer ended()
		defer close(r.done)
		r.err = part.Run(ctx)
	}()
	return r
}

// stop ends the part within its StopMax and gives what went wrong with it.
func (r *running) stop(ctx context.Context) error {
	defer r.cancel()
	select {
	case <-r.done: // nobody asked it to end: that is what there is to report
		if r.err == nil {
			return errEndedUnasked
		}
		return r.err
	default:
	}

	bound, release := context.WithTimeout(ctx, r.StopMax)
	defer release()
	var stopErr error
	if r.Stop != nil {
		// In a goroutine, so that a Stop that ignores its context is bounded too.
		stopped := make(chan error, 1)
		go func() { stopped <- r.Stop(bound) }()
		select {
		case stopErr = <-stopped:
		case <-bound.Done():
		}
	}
	r.cancel()
	select {
	case <-r.done:
	case <-bound.Done():
		return errors.Join(stopErr, fmt.Errorf("%w (%s)", ErrStopTimeout, r.StopMax))
	}
	if errors.Is(r.err, context.Canceled) {
		return stopErr
	}
	return errors.Join(stopErr, r.err)
}
