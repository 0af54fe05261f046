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

	// DryRun tells what Put would do, with the same errors, and does nothing.
	DryRun(ctx context.Context, put policy.Put) (*policy.DryRun, error)

	// Delete ends a policy with a tombstone, which it gives. Where the version in
	// force is not removal.Expected it fails with version-conflict.
	Delete(ctx context.Context, removal policy.Removal) (tombstone *policy.Installed, err error)

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
	Policies      Policies
	Overrides     Overrides
	KillSwitches  KillSwitches
	Keys          Keys
	Audit         Audit
	Installations Installations
	Stores        Stores
	Shadows       Shadows
	Explainer     Explainer       // nil: nothing is warned of that takes the other policies to tell
	Stopping      <-chan struct{} // closed when the listener is to close: then nobody waits on; nil: never
	Operators     Authenticator   // nil: whoever reaches the listener may do everything
	Actor         string          // who the audit says they are then
}

// admin serves operators.
type admin struct {
	*Site
	policies      Policies
	overrides     Overrides
	killSwitches  KillSwitches
	keys          Keys
	audit         Audit
	installations Installations
	installWaits  chan struct{} // one for each caller who waits
	stores        Stores
	shadows       Shadows
	explainer     Explainer
	stopping      <-chan struct{}
	operators     Authenticator
	actor         string
	pace          pace
}

// NewAdmin makes the handler of the admin listener: policies, their versions
// and overrides and where they are in force, kill switches, the keys' state,
// explanations, the audit, and the store.
func NewAdmin(config AdminConfig) http.Handler {
	a := &admin{
		Site: config.withDefaults(), policies: config.Policies, overrides: config.Overrides, killSwitches: config.KillSwitches,
		keys: config.Keys, audit: config.Audit,
		installations: config.Installations, installWaits: make(chan struct{}, installWaitsMax), stores: config.Stores, shadows: config.Shadows,
		explainer: config.Explainer,
		stopping:  config.Stopping, operators: config.Operators, actor: config.Actor,
	}
	router := a.router()
	a.routeGet(router, "/v1/policies", policy.Viewer, a.listPolicies)
	a.routeGet(router, "/v1/policies/{policyId}", policy.Viewer, a.getPolicy)
	a.route(router, http.MethodPut, "/v1/policies/{policyId}", policy.Operator, a.putPolicy)
	a.route(router, http.MethodDelete, "/v1/policies/{policyId}", policy.Admin, a.deletePolicy)
	a.route(router, http.MethodPost, "/v1/policies/{policyId}/rollback", policy.Operator, a.rollbackPolicy)
	a.routeGet(router, "/v1/policies/{policyId}/versions", policy.Viewer, a.listVersions)
	a.routeGet(router, "/v1/policies/{policyId}/versions/{version}", policy.Viewer, a.getVersion)
	a.routeGet(router, "/v1/policies/{policyId}/installations", policy.Viewer, a.getInstallations)
	a.routeGet(router, "/v1/policies/{policyId}/shadow-report", policy.Operator, a.getShadowReport)
	a.routeGet(router, "/v1/policies/{policyId}/overrides", policy.Operator, a.listOverrides)
	a.route(router, http.MethodPut, "/v1/policies/{policyId}/overrides", policy.Operator, a.putOverride)
	a.route(router, http.MethodDelete, "/v1/policies/{policyId}/overrides", policy.Operator, a.deleteOverride)
	a.routeGet(router, "/v1/kill-switch", policy.Viewer, a.listKillSwitches)
	a.route(router, http.MethodPost, "/v1/kill-switch", policy.Admin, a.throwKillSwitch)
	a.route(router, http.MethodDelete, "/v1/kill-switch", policy.Admin, a.takeBackKillSwitch)
	a.routeGet(router, "/v1/buckets", policy.Operator, a.getBuckets)
	a.route(router, http.MethodPost, "/v1/buckets/reset", policy.Operator, a.resetBucket)
	a.route(router, http.MethodPost, "/v1/buckets/rebase", policy.Operator, a.rebaseBuckets)
	a.route(router, http.MethodPost, "/v1/explain", policy.Viewer, a.explain)
	a.routeGet(router, "/v1/audit", policy.Viewer, a.listAudit)
	a.routeGet(router, "/v1/stores", policy.Viewer, a.listStores)
	return router
}
