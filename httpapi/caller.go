package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/rationhq/ration/policy"
)

// Authenticator says who calls. Errors are *policy.Error: unauthenticated
// where nobody is named, or none that holds.
type Authenticator interface {
	Authenticate(r *http.Request) (policy.Caller, error)
}

// authorKey is the key of the author in a request's context.
type authorKey struct{}

// authorOf is who makes the change that a request to the admin listener asks
// for.
func authorOf(r *http.Request) policy.Author {
	author, _ := r.Context().Value(authorKey{}).(policy.Author)
	return author
}

// route adds an endpoint for operators whose role is at least least.
func (a *admin) route(router *chi.Mux, method, pattern string, least policy.Role, answer endpoint) {
	a.Site.route(router, method, pattern, a.authorised(least, answer))
}

// routeGet adds an endpoint that is read, under GET and HEAD.
func (a *admin) routeGet(router *chi.Mux, pattern string, least policy.Role, answer endpoint) {
	a.Site.routeGet(router, pattern, a.authorised(least, answer))
}

// authorised lets through whoever has the role; nothing of the request is read
// before that.
func (a *admin) authorised(least policy.Role, answer endpoint) endpoint {
	return func(w http.ResponseWriter, r *http.Request) (int, error) {
		caller, err := a.authenticate(r)
		if err != nil {
			return 0, err
		}
		if caller.Role < least {
			return 0, forbidden(fmt.Sprintf("This takes the role %s or more.", least))
		}
		if err := a.pace.paced(r, caller.Name); err != nil {
			return 0, err
		}
		author := policy.Author{Actor: caller.Name, Role: caller.Role, RequestID: ensureRequestID(w, r)}
		return answer(w, r.WithContext(context.WithValue(r.Context(), authorKey{}, author)))
	}
}

// authenticate says who calls: on an open listener whoever can
// reach it, with every right.
func (a *admin) authenticate(r *http.Request) (policy.Caller, error) {
	if a.operators == nil {
		return policy.Caller{Name: a.actor, Role: policy.Admin}, nil
	}
	return a.operators.Authenticate(r)
}

// forbidden is a 403 for a caller who is known.
func forbidden(detail string) error {
	return &policy.Error{Code: policy.CodeForbidden, Reason: policy.ReasonForbidden, Detail: detail}
}

// gatewayEndpoint answers a request of a gateway.
type gatewayEndpoint func(w http.ResponseWriter, r *http.Request, gateway *policy.Gateway) (status int, err error)

// route adds an endpoint for gateways.
func (d *decisions) route(router *chi.Mux, method, pattern string, answer gatewayEndpoint) {
	d.Site.route(router, method, pattern, d.ofGateway(answer))
}

// routeGet adds an endpoint that is read, under GET and HEAD.
func (d *decisions) routeGet(router *chi.Mux, pattern string, answer gatewayEndpoint) {
	d.Site.routeGet(router, pattern, d.ofGateway(answer))
}

// ofGateway lets gateways through; nothing of the request is read before that.
func (d *decisions) ofGateway(answer gatewayEndpoint) endpoint {
	return func(w http.ResponseWriter, r *http.Request) (int, error) {
		if d.gateways == nil {
			return answer(w, r, &d.anyGateway)
		}
		caller, err := d.gateways.Authenticate(r)
		if err != nil {
			return 0, err
		}
		if caller.Gateway == nil {
			return 0, forbidden("This listener is for gateways.")
		}
		return answer(w, r, caller.Gateway)
	}
}
