package authority

import (
	"net/http"
	"strings"

	"github.com/rationhq/ration/policy"
)

// Authority knows the callers of both listeners. What they may do there is the
// listener's to say.
type Authority struct {
	Tokens       *Tokens
	Certificates *Certificates // nil: nobody presents one
	Issuer       *Issuer       // nil: tokens of ours are the only bearer tokens
}

// Authenticate says who calls: by the bearer token where there is one, whether
// it holds or not, else by the certificate of the connection.
func (a *Authority) Authenticate(r *http.Request) (policy.Caller, error) {
	credentials := r.Header["Authorization"]
	if len(credentials) > 0 {
		bearer, ok := bearerToken(credentials)
		switch {
		case !ok:
			return policy.Caller{}, unauthenticated("Authorization must be given once, as Bearer and a token.", nil)
		case strings.HasPrefix(bearer, tokenPrefix):
			return a.Tokens.verify(bearer)
		case a.Issuer != nil:
			return a.Issuer.verify(r.Context(), bearer)
		}
		return policy.Caller{}, unauthenticated(detailTokenInvalid, nil)
	}
	if a.Certificates != nil && r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return a.Certificates.verify(r.TLS)
	}
	return policy.Caller{}, unauthenticated("Say who calls by a bearer token or a client certificate.", nil)
}

// bearerToken gives the token of the one Authorization header (RFC 6750).
func bearerToken(credentials []string) (token string, ok bool) {
	if len(credentials) != 1 {
		return "", false
	}
	scheme, token, found := strings.Cut(credentials[0], " ")
	return token, found && token != "" && strings.EqualFold(scheme, "Bearer")
}

// detailTokenInvalid tells not what the token lacks: who guesses learns nothing.
const detailTokenInvalid = "The bearer token does not hold: it is unknown, expired or revoked."

func unauthenticated(detail string, cause error) error {
	return &policy.Error{Code: policy.CodeUnauthenticated, Reason: policy.ReasonUnauthenticated, Detail: detail, Cause: cause}
}
