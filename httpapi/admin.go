package httpapi

import (
	"context"
	"net/http"

	"github.com/rationhq/ration/policy"
)

// Policies keeps policies and their versions. Errors are *policy.Error or the
// context's.
type Policies interface {
	// Put installs a version and its audit row in one transaction. Where the
	// version in force is not put.Expected it changes nothing and fails with
	// version-conflict; that is decided before contents are compared. The same
	// content as in force installs nothing: changed is false.
	Put(ctx context.Context, put policy.Put) (inForce *policy.Installed, changed bool, err error)

	// Get gives the version in force; not-found when there is none.
	Get(ctx context.Context, id string) (*policy.Installed, error)

	// List gives at most limit policies in force, by ascending id, those behind
	// the id after ("" begins).
	List(ctx context.Context, after string, limit int) ([]*policy.Installed, error)

	// Versions gives at most limit versions of a policy, ascending, those behind
	// the version after (0 begins); not-found when there is no such policy.
	Versions(ctx context.Context, id string, after, limit int) ([]*policy.Installed, error)

	// Version gives one version; not-found when there is none.
	Version(ctx context.Context, id string, version int) (*policy.Installed, error)
}

// AdminConfig is what the admin listener needs.
type AdminConfig struct {
	Site
	Policies  Policies
	Audit     Audit
	Operators Authenticator // nil: whoever reaches the listener may do everything
	Actor     string        // who the audit says they are then
}

// admin serves operators.
type admin struct {
	*Site
	policies  Policies
	audit     Audit
	operators Authenticator
	actor     string
}

// NewAdmin makes the handler of the admin listener: policies and their
// versions under /v1/policies, and the audit.
func NewAdmin(config AdminConfig) http.Handler {
	a := &admin{Site: config.withDefaults(), policies: config.Policies, audit: config.Audit, operators: config.Operators, actor: config.Actor}
	router := a.router()
	a.routeGet(router, "/v1/policies", policy.Viewer, a.listPolicies)
	a.routeGet(router, "/v1/policies/{policyId}", policy.Viewer, a.getPolicy)
	a.route(router, http.MethodPut, "/v1/policies/{policyId}", policy.Operator, a.putPolicy)
	a.routeGet(router, "/v1/policies/{policyId}/versions", policy.Viewer, a.listVersions)
	a.routeGet(router, "/v1/policies/{policyId}/versions/{version}", policy.Viewer, a.getVersion)
	a.routeGet(router, "/v1/audit", policy.Viewer, a.listAudit)
	return router
}
