package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/rationhq/ration/internal/authority"
	"github.com/rationhq/ration/internal/lifecycle"
	"github.com/rationhq/ration/policy"
)

// authorityConfig says how the callers of `ration serve` prove who they are.
// Tokens of the store always do.
type authorityConfig struct {
	Open        bool   `env:"RATION_OPEN"            envDefault:"false"                                                                                     help:"true: let in whoever reaches the listeners, on loopback only"`
	Certificate string `env:"RATION_TLS_CERT"        help:"file of the server's certificate, PEM; without it decisions and administration speak plain HTTP"`
	Key         string `env:"RATION_TLS_KEY"         help:"file of its key"`
	ClientCA    string `env:"RATION_TLS_CLIENT_CA"   help:"file of the authorities of client certificates, PEM"`
	Clients     string `env:"RATION_TLS_CLIENTS"     help:"file that says who has which name in a client certificate, JSON"`
	Issuer      string `env:"RATION_OIDC_ISSUER"     help:"URL of the OpenID issuer whose bearer tokens operators may present"`
	Audience    string `env:"RATION_OIDC_AUDIENCE"   help:"who its tokens have to be for"`
	NameClaim   string `env:"RATION_OIDC_NAME_CLAIM" envDefault:"sub"                                                                                       help:"the claim that names the operator in the audit"`
	RoleClaim   string `env:"RATION_OIDC_ROLE_CLAIM" envDefault:"roles"                                                                                     help:"the claim that holds the operator's groups"`
	Roles       string `env:"RATION_OIDC_ROLES"      help:"what groups may do: group=role,group=role"`
}

// check notes what cannot be: settings that need each other, and an open
// service that other machines would reach.
func (c *authorityConfig) check(listen *addresses, found *faults) {
	if c.Open {
		listen.checkLoopback("RATION_OPEN lets in whoever reaches it", found)
	} else {
		listen.check(found)
	}
	found.together([2]string{"RATION_TLS_CERT", "RATION_TLS_KEY"}, [2]string{c.Certificate, c.Key})
	found.together([2]string{"RATION_TLS_CLIENT_CA", "RATION_TLS_CLIENTS"}, [2]string{c.ClientCA, c.Clients})
	found.together([2]string{"RATION_OIDC_ISSUER", "RATION_OIDC_AUDIENCE"}, [2]string{c.Issuer, c.Audience})
	found.together([2]string{"RATION_OIDC_ISSUER", "RATION_OIDC_ROLES"}, [2]string{c.Issuer, c.Roles})
	if c.ClientCA != "" && c.Certificate == "" {
		found.notef("RATION_TLS_CERT", "is not set: client certificates need a server that speaks TLS")
	}
	if c.Issuer != "" {
		found.checkURL("RATION_OIDC_ISSUER", c.Issuer)
	}
	if _, err := parseRoles(c.Roles); err != nil {
		found.notef("RATION_OIDC_ROLES", "%v", err)
	}
}

// parseRoles reads which group has which role.
func parseRoles(text string) (map[string]policy.Role, error) {
	roles := make(map[string]policy.Role)
	if text == "" {
		return roles, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		group, name, _ := cutLast(strings.TrimSpace(pair), "=")
		role, known := policy.ParseRole(name)
		if group == "" || !known {
			return nil, fmt.Errorf("%q is not a group and its role, as in sre=admin: roles are viewer, operator and admin", pair)
		}
		roles[group] = role
	}
	return roles, nil
}

// warn tells what is allowed, and should not be by mistake.
func (c *authorityConfig) warn(ctx context.Context, listen *addresses, log *slog.Logger) {
	if c.Open {
		log.WarnContext(ctx, "RATION_OPEN: whoever reaches the listeners may do everything")
	}
	if c.Certificate == "" && !(isLoopback(listen.Decisions) && isLoopback(listen.Admin)) {
		log.WarnContext(ctx, "tokens cross the network in the clear, unless something in front of this speaks TLS (RATION_TLS_CERT)")
	}
}

// authority puts together who knows the callers; nil where nobody asks.
func (c *authorityConfig) authority(store authority.TokenStore, log *slog.Logger) (*authority.Authority, error) {
	if c.Open {
		return nil, nil
	}
	a := &authority.Authority{Tokens: authority.NewTokens(store, log)}
	if c.Issuer != "" {
		roles, err := parseRoles(c.Roles)
		if err != nil {
			return nil, err
		}
		a.Issuer = authority.NewIssuer(authority.IssuerConfig{
			URL: c.Issuer, Audience: c.Audience, NameClaim: c.NameClaim, RoleClaim: c.RoleClaim, Roles: roles,
		}, log)
	}
	if c.Certificate == "" {
		return a, nil
	}
	var err error
	a.Certificates, err = authority.LoadCertificates(authority.Files{
		Certificate: c.Certificate, Key: c.Key, ClientCA: c.ClientCA, Clients: c.Clients,
	}, log)
	return a, err
}

// authorityParts keep what is known of callers up to date.
func authorityParts(a *authority.Authority) []lifecycle.Part {
	if a == nil {
		return nil
	}
	part := func(name string, run func(context.Context) error) lifecycle.Part {
		return lifecycle.Part{Name: name, StopMax: upkeepMax, Run: run}
	}
	parts := []lifecycle.Part{part("tokens", a.Tokens.Run)}
	if a.Certificates != nil {
		parts = append(parts, part("certificates", a.Certificates.Run))
	}
	if a.Issuer != nil {
		parts = append(parts, part("issuer", a.Issuer.Run))
	}
	return parts
}
