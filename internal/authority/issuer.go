package authority

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/time/rate"

	"github.com/rationhq/ration/policy"
)

// Bounds of what callers can have an issuer and this process do.
const (
	issuerTimeout   = 5 * time.Second  // of one question to the issuer
	issuerPeriod    = 10 * time.Second // between questions: a flood of tokens by unknown keys asks no more often
	issuerBurst     = 3                // the discovery, and the keys twice
	verificationMax = 8                // at once; each is a signature, some 50 µs
)

// IssuerConfig says whose tokens are taken and what they mean.
type IssuerConfig struct {
	URL       string // of the issuer, as in its discovery document
	Audience  string // who its tokens have to be for
	NameClaim string // the claim that names the operator in the audit
	RoleClaim string // the claim that holds groups, one or a list
	Roles     map[string]policy.Role
}

// Issuer takes the tokens of an OpenID provider for those of operators. It is
// found whenever it answers; until then its tokens are refused as unavailable.
type Issuer struct {
	config IssuerConfig
	log    *slog.Logger
	client *http.Client

	verifier atomic.Pointer[oidc.IDTokenVerifier] // nil until the issuer was found
	places   chan struct{}                        // one for each verification at a time
}

// NewIssuer makes an issuer that Run is to find.
func NewIssuer(config IssuerConfig, log *slog.Logger) *Issuer {
	pace := rate.NewLimiter(rate.Every(issuerPeriod), issuerBurst)
	return &Issuer{
		config: config, log: log, places: make(chan struct{}, verificationMax),
		client: &http.Client{Timeout: issuerTimeout, Transport: &paced{limiter: pace, next: &http.Transport{
			Proxy: http.ProxyFromEnvironment, IdleConnTimeout: issuerPeriod,
		}}},
	}
}

// Run finds the issuer, however long that takes, until ctx ends, which is no
// error. Keys are fetched when a token by a new one comes.
func (i *Issuer) Run(ctx context.Context) error {
	for failing := false; ; failing = true {
		provider, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.config.URL)
		if err == nil {
			i.verifier.Store(provider.Verifier(&oidc.Config{ClientID: i.config.Audience}))
			<-ctx.Done()
			i.client.CloseIdleConnections()
			return nil
		}
		if ctx.Err() == nil && !failing {
			i.log.WarnContext(ctx, "the OpenID issuer is not found yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(issuerPeriod):
		}
	}
}

// verify says which operator a token is of.
func (i *Issuer) verify(ctx context.Context, raw string) (policy.Caller, error) {
	verifier := i.verifier.Load()
	if verifier == nil {
		return policy.Caller{}, &policy.Error{
			Code: policy.CodeUnavailable, Reason: policy.ReasonIssuerUnavailable, Detail: "The issuer of bearer tokens has not answered yet.",
		}
	}
	select {
	case i.places <- struct{}{}:
		defer func() { <-i.places }()
	default:
		return policy.Caller{}, &policy.Error{
			Code: policy.CodeOverloaded, Reason: policy.ReasonOverloaded, Detail: "Too many bearer tokens are being verified.",
		}
	}
	verified, err := verifier.Verify(ctx, raw)
	if err != nil {
		return policy.Caller{}, unauthenticated(detailTokenInvalid, err)
	}
	var claims map[string]json.RawMessage
	if err := verified.Claims(&claims); err != nil {
		return policy.Caller{}, unauthenticated(detailTokenInvalid, err)
	}
	caller := policy.Caller{Role: i.role(claims[i.config.RoleClaim])}
	if json.Unmarshal(claims[i.config.NameClaim], &caller.Name) != nil || !isActor(caller.Name) {
		return policy.Caller{}, unauthenticated("The bearer token does not name its operator.", nil)
	}
	return caller, nil
}

// role is the highest that one of the groups has.
func (i *Issuer) role(claim json.RawMessage) policy.Role {
	var groups []string
	var single string
	if json.Unmarshal(claim, &single) == nil {
		groups = []string{single}
	} else if json.Unmarshal(claim, &groups) != nil {
		return policy.NoRole
	}
	highest := policy.NoRole
	for _, group := range groups {
		highest = max(highest, i.config.Roles[group])
	}
	return highest
}

// isActor says whether a name can stand in the audit and be read there.
func isActor(name string) bool {
	return name != "" && len(name) <= policy.TextBytesMax && utf8.ValidString(name) &&
		!slices.ContainsFunc([]rune(name), func(c rune) bool { return !unicode.IsPrint(c) })
}

// errTooSoon is where the issuer was asked as often as it may be.
var errTooSoon = errors.New("the issuer was asked often enough for now")

// paced bounds how often the issuer is asked.
type paced struct {
	limiter *rate.Limiter
	next    http.RoundTripper
}

func (p *paced) RoundTrip(request *http.Request) (*http.Response, error) {
	if !p.limiter.Allow() {
		return nil, errTooSoon
	}
	return p.next.RoundTrip(request)
}
