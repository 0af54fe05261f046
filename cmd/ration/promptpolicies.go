package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/rationhq/ration/limiter"
	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// promptMax bounds the wait for a change to be in force here. Loading takes
// milliseconds; without it the next poll does.
const promptMax = 2 * time.Second

// promptPolicies are the store's policies, with changes that are answered when
// this very instance matches by them: whoever installs a policy and then asks
// for a decision is answered by it.
type promptPolicies struct {
	*pgstore.Store

	limiter *limiter.Limiter
	log     *slog.Logger
}

func newPromptPolicies(s *service) *promptPolicies {
	return &promptPolicies{Store: s.store, limiter: s.limiter, log: s.log}
}

// Put installs a version in the store and waits until it is in force here.
func (p *promptPolicies) Put(ctx context.Context, put policy.Put) (installed *policy.Installed, changed bool, err error) {
	installed, changed, err = p.Store.Put(ctx, put)
	if err != nil {
		return nil, false, err
	}
	p.await(ctx, installed)
	return installed, changed, nil
}

// Delete ends a policy in the store and waits until nothing is matched by it
// here.
func (p *promptPolicies) Delete(ctx context.Context, removal policy.Removal) (tombstone *policy.Installed, err error) {
	if err := p.Store.Delete(ctx, removal); err != nil {
		return nil, err
	}
	tombstone, err = p.Version(ctx, removal.ID, removal.Expected+1)
	if err != nil {
		return nil, err
	}
	p.await(ctx, tombstone)
	return tombstone, nil
}

// await waits until a version is in force here.
func (p *promptPolicies) await(ctx context.Context, installed *policy.Installed) {
	waiting, cancel := context.WithTimeout(ctx, promptMax)
	defer cancel()
	if err := p.limiter.Await(waiting, installed); err != nil {
		// It is installed, which is what was asked; the answer must not say otherwise.
		p.log.WarnContext(ctx, "an installed policy is not in force in this instance yet",
			"policy", installed.ID, "version", installed.Version, "error", err)
	}
}

// ShadowReport gives the store's report, to which this instance has added what
// it has seen until now; others add theirs every few seconds.
func (p *promptPolicies) ShadowReport(
	ctx context.Context, id string, version int, after policy.ShadowCursor, limit int,
) (policy.ShadowReport, error) {
	if err := p.limiter.ReportShadows(ctx); err != nil {
		return policy.ShadowReport{}, err
	}
	return p.Store.ShadowReport(ctx, id, version, after, limit)
}
