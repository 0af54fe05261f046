package authority

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rationhq/ration/policy"
)

// provider is an OpenID issuer on this machine.
type provider struct {
	*httptest.Server

	mu      sync.Mutex
	keys    map[string]*rsa.PrivateKey // by id
	fetched atomic.Int32               // how often its keys were asked for
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{keys: map[string]*rsa.PrivateKey{}}
	routes := http.NewServeMux()
	answer := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}
	routes.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	routes.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		p.fetched.Add(1)
		answer(w, map[string]any{"keys": p.published()})
	})
	p.Server = httptest.NewServer(routes)
	t.Cleanup(p.Close)
	p.rotate(t, "first")
	return p
}

// rotate adds a key.
func (p *provider) rotate(t *testing.T, id string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[id] = key
}

func (p *provider) published() []map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []map[string]string
	for id, key := range p.keys {
		all = append(all, map[string]string{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": id,
			"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()),
			"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()),
		})
	}
	return all
}

// sign makes a token of an operator, with some claims changed.
func (p *provider) sign(t *testing.T, keyID string, changed map[string]any) string {
	t.Helper()
	claims := map[string]any{
		"iss": p.URL, "aud": "ration", "sub": "1234", "email": "ann@example.org", "groups": []string{"staff", "sre"},
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(claims, changed)
	part := func(content any) string {
		encoded, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(encoded)
	}
	text := part(map[string]string{"alg": "RS256", "kid": keyID}) + "." + part(claims)
	p.mu.Lock()
	key := p.keys[keyID]
	p.mu.Unlock()
	if key == nil { // a forger's own
		var err error
		if key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			t.Fatal(err)
		}
	}
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// found is an issuer that the provider has been found by.
func found(t *testing.T, p *provider) *Issuer {
	t.Helper()
	issuer := NewIssuer(IssuerConfig{
		URL: p.URL, Audience: "ration", NameClaim: "email", RoleClaim: "groups",
		Roles: map[string]policy.Role{"staff": policy.Viewer, "sre": policy.Admin, "on call": policy.Operator},
	}, discard())
	_, err := issuer.verify(t.Context(), p.sign(t, "first", nil))
	refusedAs(t, "before it is found", err, policy.ReasonIssuerUnavailable)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- issuer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	deadline := time.After(30 * time.Second)
	for issuer.verifier.Load() == nil {
		select {
		case <-deadline:
			t.Fatal("the issuer is not found")
		case <-time.After(time.Millisecond):
		}
	}
	return issuer
}

func TestIssuersTokensNameOperators(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	callers := &Authority{Issuer: found(t, p)}
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+p.URL+`","aud":"ration","email":"ann@example.org","groups":"sre","exp":9999999999}`)) + "."
	after := func(wait time.Duration) int64 { return time.Now().Add(wait).Unix() }
	for name, c := range map[string]struct {
		bearer string
		want   policy.Caller // none: refused
	}{
		"two groups, the higher one counts": {p.sign(t, "first", nil), policy.Caller{Name: "ann@example.org", Role: policy.Admin}},
		"one group as text":                 {p.sign(t, "first", map[string]any{"groups": "on call"}), policy.Caller{Name: "ann@example.org", Role: policy.Operator}},
		"a group of no role":                {p.sign(t, "first", map[string]any{"groups": []string{"SRE"}}), policy.Caller{Name: "ann@example.org"}},
		"no groups":                         {p.sign(t, "first", map[string]any{"groups": nil}), policy.Caller{Name: "ann@example.org"}},
		"groups of another form":            {p.sign(t, "first", map[string]any{"groups": map[string]int{"sre": 1}}), policy.Caller{Name: "ann@example.org"}},
		"several audiences":                 {p.sign(t, "first", map[string]any{"aud": []string{"other", "ration"}}), policy.Caller{Name: "ann@example.org", Role: policy.Admin}},
		"another audience":                  {p.sign(t, "first", map[string]any{"aud": "other"}), policy.Caller{}},
		"another issuer":                    {p.sign(t, "first", map[string]any{"iss": "https://example.org"}), policy.Caller{}},
		"expired":                           {p.sign(t, "first", map[string]any{"exp": after(-time.Hour)}), policy.Caller{}},
		"not yet":                           {p.sign(t, "first", map[string]any{"nbf": after(time.Hour)}), policy.Caller{}},
		"no name":                           {p.sign(t, "first", map[string]any{"email": nil}), policy.Caller{}},
		"an empty name":                     {p.sign(t, "first", map[string]any{"email": ""}), policy.Caller{}},
		"a name of two lines":               {p.sign(t, "first", map[string]any{"email": "ann\nbob"}), policy.Caller{}},
		"a forger's":                        {p.sign(t, "forged", nil), policy.Caller{}},
		"unsigned":                          {unsigned, policy.Caller{}},
		"no token at all":                   {"x", policy.Caller{}},
	} {
		got, err := callers.Authenticate(presenting(c.bearer))
		if c.want == (policy.Caller{}) {
			refusedAs(t, name, err, policy.ReasonUnauthenticated)
		} else if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}

// A new key is asked for, and a flood of forged ones asks no more often than
// the issuer is to bear.
func TestIssuersKeysAreAskedForWithinBounds(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	issuer := found(t, p)
	p.rotate(t, "second")
	if _, err := issuer.verify(t.Context(), p.sign(t, "second", nil)); err != nil {
		t.Errorf("a token by a new key: %v", err)
	}
	forged := p.sign(t, "forged", nil)
	for range 100 {
		_, err := issuer.verify(t.Context(), forged)
		refusedAs(t, "forged", err, policy.ReasonUnauthenticated)
	}
	if asked := p.fetched.Load(); asked > issuerBurst {
		t.Errorf("the issuer was asked for its keys %d times", asked)
	}
	if _, err := issuer.verify(t.Context(), p.sign(t, "second", nil)); err != nil {
		t.Errorf("a good token after a flood: %v", err)
	}
}

// As many signatures are verified at once as have places.
func TestVerificationsAreBounded(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	issuer := found(t, p)
	for range verificationMax {
		issuer.places <- struct{}{}
	}
	_, err := issuer.verify(t.Context(), p.sign(t, "first", nil))
	refusedAs(t, "one too many", err, policy.ReasonOverloaded)
}
