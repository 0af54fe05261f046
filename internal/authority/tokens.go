package authority

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rationhq/ration/policy"
)

// tokensPeriod is how late an instance that was told nothing is to know of a
// new token, or of one that was revoked.
const tokensPeriod = time.Second

// lifeMaxMicros is longer than any instance runs, and no more than a duration
// can say.
const lifeMaxMicros = 100 * 366 * 24 * int64(time.Hour/time.Microsecond)

// TokenStore keeps tokens.
type TokenStore interface {
	// Tokens gives the tokens that let somebody in, and the instant of the
	// store's clock at which they did.
	Tokens(ctx context.Context) (tokens []policy.Token, nowMicros int64, err error)
}

// Tokens are those that let somebody in, as they were when the store last
// answered.
type Tokens struct {
	store TokenStore
	log   *slog.Logger

	known  atomic.Pointer[map[int64]token] // nil until the store has answered once
	loaded chan struct{}                   // closed then
	once   sync.Once
	wake   chan struct{}
}

// token is one that lets in until it expires.
type token struct {
	caller  policy.Caller
	hash    [32]byte
	expires time.Time // on this machine's clock; zero: never
}

// NewTokens makes the tokens of a store, of which none is known before Run.
func NewTokens(store TokenStore, log *slog.Logger) *Tokens {
	return &Tokens{store: store, log: log, loaded: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// Refresh has Run ask the store now.
func (t *Tokens) Refresh() {
	select {
	case t.wake <- struct{}{}:
	default: // it is to ask already
	}
}

// AwaitLoaded waits until the store has answered once.
func (t *Tokens) AwaitLoaded(ctx context.Context) error {
	select {
	case <-t.loaded:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run asks the store now, once a second and when it is told to, until ctx
// ends, which is no error. What is known stays while the store is away.
func (t *Tokens) Run(ctx context.Context) error {
	ticker := time.NewTicker(tokensPeriod)
	defer ticker.Stop()
	failing := false
	for {
		err := t.load(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !failing {
			t.log.WarnContext(ctx, "tokens cannot be read; those that are known stay", "error", err)
		}
		if err == nil && failing {
			t.log.InfoContext(ctx, "tokens are read again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-t.wake:
		}
	}
}

// load takes over what the store has now.
func (t *Tokens) load(ctx context.Context) error {
	asked := time.Now() // before the store's own instant: no token lives longer here than there
	tokens, nowMicros, err := t.store.Tokens(ctx)
	if err != nil {
		return err
	}
	known := make(map[int64]token, len(tokens))
	for i := range tokens {
		kept := token{caller: tokens[i].Caller, hash: tokens[i].Hash}
		if ends := tokens[i].ExpiresAtMicros; ends != 0 {
			kept.expires = asked.Add(time.Duration(min(ends-nowMicros, lifeMaxMicros)) * time.Microsecond)
		}
		known[tokens[i].ID] = kept
	}
	t.known.Store(&known)
	t.once.Do(func() { close(t.loaded) })
	return nil
}

// verify says whose token a text is. One of a number that is none costs no
// hash, and no one costs more than that.
func (t *Tokens) verify(text string) (policy.Caller, error) {
	known := t.known.Load()
	if known == nil {
		return policy.Caller{}, &policy.Error{
			Code: policy.CodeUnavailable, Reason: policy.ReasonStoreUnavailable,
			Detail: "Which tokens hold is not known yet: the store gave no answer since the start.",
		}
	}
	id, secret, ok := parseToken(text)
	if !ok {
		return policy.Caller{}, unauthenticated(detailTokenInvalid, nil)
	}
	token, exists := (*known)[id]
	if !exists {
		return policy.Caller{}, unauthenticated(detailTokenInvalid, nil)
	}
	hash := secret.Hash()
	if subtle.ConstantTimeCompare(hash[:], token.hash[:]) != 1 || !token.expires.IsZero() && !time.Now().Before(token.expires) {
		return policy.Caller{}, unauthenticated(detailTokenInvalid, nil)
	}
	return token.caller, nil
}
