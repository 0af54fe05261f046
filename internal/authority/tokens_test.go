package authority

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rationhq/ration/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// stubStore keeps tokens, or is away.
type stubStore struct {
	mu     sync.Mutex
	tokens []policy.Token
	now    int64
	err    error
}

func (s *stubStore) Tokens(context.Context) ([]policy.Token, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens, s.now, s.err
}

// set replaces what the store answers.
func (s *stubStore) set(err error, tokens ...policy.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens, s.err = tokens, err
}

// admin is a token of an admin, and what its holder presents.
func admin(id int64) (policy.Token, string) {
	secret := NewSecret()
	caller := policy.Caller{Name: "ann" + strconv.FormatInt(id, 10), Role: policy.Admin}
	return policy.Token{ID: id, Caller: caller, Hash: secret.Hash()}, secret.Token(id)
}

// presenting is a request with a bearer token.
func presenting(bearer string) *http.Request {
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("Authorization", "Bearer "+bearer)
	return request
}

// refusedAs checks the reason of a refusal; "" wants none.
func refusedAs(t *testing.T, what string, err error, reason policy.Reason) {
	t.Helper()
	known, _ := errors.AsType[*policy.Error](err)
	if (err == nil) != (reason == "") || err != nil && (known == nil || known.Reason != reason) {
		t.Errorf("%s: %v, want %q", what, err, reason)
	}
}

func TestSecretsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, id := range []int64{1, 17, 1<<63 - 1} {
		secret := NewSecret()
		gotID, got, ok := parseToken(secret.Token(id))
		if !ok || gotID != id || got != secret {
			t.Errorf("%s is read as %d %x, %v", secret.Token(id), gotID, got, ok)
		}
	}
	secret := NewSecret()
	whole := secret.Token(1)
	for _, wrong := range []string{
		"rat_", "rat_1", "rat_1_", "rat__" + whole[6:], "rat_x_" + whole[6:], "rat_99999999999999999999_" + whole[6:],
		whole + "A", whole[:len(whole)-1], whole[:len(whole)-1] + "=", whole[:len(whole)-1] + "\n", strings.Replace(whole, "_", "-", 2),
	} {
		if _, _, ok := parseToken(wrong); ok {
			t.Errorf("%q is read", wrong)
		}
	}
}

func TestTokensLetInWhoHoldsThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		token, text := admin(1)
		brief, briefText := admin(2)
		store := &stubStore{now: 1_000_000}
		brief.ExpiresAtMicros = store.now + (90 * time.Second).Microseconds()
		tokens := NewTokens(store, discard())
		callers := &Authority{Tokens: tokens}
		is := func(what, bearer string, reason policy.Reason) {
			t.Helper()
			_, err := callers.Authenticate(presenting(bearer))
			refusedAs(t, what, err, reason)
		}
		is("before the store has answered", text, policy.ReasonStoreUnavailable)

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		store.set(nil, token, brief)
		go func() { ended <- tokens.Run(ctx) }()
		if err := tokens.AwaitLoaded(ctx); err != nil {
			t.Fatal(err)
		}
		if caller, err := callers.Authenticate(presenting(text)); err != nil || caller != token.Caller {
			t.Errorf("%+v, %v", caller, err)
		}
		other := NewSecret()
		is("another secret", other.Token(1), policy.ReasonUnauthenticated)
		is("another number", "rat_3"+text[5:], policy.ReasonUnauthenticated)
		is("the number of another token", "rat_2"+text[5:], policy.ReasonUnauthenticated)
		is("no token of ours", "eyJ", policy.ReasonUnauthenticated)

		// Told or not, it is known a second later.
		late, lateText := admin(4)
		store.set(nil, token, brief, late)
		is("one that is not known yet", lateText, policy.ReasonUnauthenticated)
		tokens.Refresh()
		synctest.Wait()
		is("one that was told of", lateText, "")
		store.set(nil, token, brief)
		<-time.After(tokensPeriod + time.Millisecond)
		is("one that was revoked", lateText, policy.ReasonUnauthenticated)

		// The store is away: who was known stays known, and expires in time.
		store.set(errors.New("away"))
		<-time.After(60 * time.Second)
		is("a token while the store is away", text, "")
		is("one that is to expire", briefText, "")
		<-time.After(30 * time.Second)
		is("one that has expired", briefText, policy.ReasonUnauthenticated)
		is("one that does not", text, "")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAuthorizationIsGivenOnce(t *testing.T) {
	t.Parallel()
	token, text := admin(1)
	tokens := NewTokens(&stubStore{tokens: []policy.Token{token}}, discard())
	if err := tokens.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	callers := &Authority{Tokens: tokens}
	for name, c := range map[string]struct {
		headers []string
		reason  policy.Reason
	}{
		"none":           {nil, policy.ReasonUnauthenticated},
		"another scheme": {[]string{"Basic " + text}, policy.ReasonUnauthenticated},
		"no token":       {[]string{"Bearer "}, policy.ReasonUnauthenticated},
		"no scheme":      {[]string{text}, policy.ReasonUnauthenticated},
		"twice":          {[]string{"Bearer " + text, "Bearer " + text}, policy.ReasonUnauthenticated},
		"small letters":  {[]string{"bearer " + text}, ""},
	} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Header["Authorization"] = c.headers
		_, err := callers.Authenticate(request)
		refusedAs(t, name, err, c.reason)
	}
}

// Who guesses costs no memory, and no hash unless he knows a number.
//
//nolint:paralleltest // counts allocations
func TestAFloodOfGuessesCostsNothing(t *testing.T) {
	token, _ := admin(1)
	tokens := NewTokens(&stubStore{tokens: []policy.Token{token}}, discard())
	if err := tokens.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	callers := &Authority{Tokens: tokens}
	request := presenting("rat_2_" + rand.Text())
	allocations := testing.AllocsPerRun(100, func() {
		if _, err := callers.Authenticate(request); err == nil {
			t.Error("a guess is let in")
		}
	})
	if allocations > 2 { // the error itself
		t.Errorf("a guess costs %v allocations", allocations)
	}
	if len(*tokens.known.Load()) != 1 {
		t.Error("guesses are kept")
	}
}
