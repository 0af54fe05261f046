package limiter

import (
	"context"
	"log/slog"
	"time"

	"github.com/rationhq/ration/policy"
)

// reconnectInterval spaces a lane's attempts to connect while nobody asks:
// soon enough for the first caller after a restart to find a warm connection.
const reconnectInterval = 250 * time.Millisecond

// outage is what a lane knows of its store's silence.
type outage struct {
	log     *slog.Logger
	began   bool // and has been logged
	severed bool // the last call cost the session its connection, or found none
}

// called notes how a call ended. Only the first without an answer and the
// first with one again are logged; the cause never holds a key.
func (o *outage) called(ctx context.Context, kind kind, err error) {
	o.severed = isFault(err, policy.StoreUnreachable) || isFault(err, policy.StoreUnsure)
	switch {
	case o.severed && !o.began:
		o.log.WarnContext(ctx, "a lane gets no answer from the store", "lane", kind.String(), "error", err)
	case !o.severed && o.began:
		o.log.InfoContext(ctx, "a lane gets answers from the store again", "lane", kind.String())
	}
	o.began = o.severed
}

// reconnect connects a severed session and warms it up while nobody waits for
// it, and gives when to try again: nil for not.
func (l *lane) reconnect(ctx context.Context) <-chan time.Time {
	if !l.outage.severed || ctx.Err() != nil {
		return nil
	}
	if l.session.Connect(ctx) != nil {
		return time.After(reconnectInterval)
	}
	l.outage.severed = false
	return nil
}

// recover sees to lost fast state and says whether calls can go on.
func (l *lane) recover(ctx context.Context) bool {
	found, err := l.session.Recover(ctx)
	if found {
		l.outage.log.ErrorContext(ctx, "the fast state was lost in a crash of the store; the loss is recorded, and buckets start anew")
	}
	return err == nil
}
