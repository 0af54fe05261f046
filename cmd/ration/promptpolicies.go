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

// promptPolicies are the store's policies, with a Put that answers when this
// very instance matches by the new version: whoever installs a policy and then
// asks for a decision is answered by it.
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
	waiting, cancel := context.WithTimeout(ctx, promptMax)
	defer cancel()
	if err := p.limiter.Await(waiting, installed); err != nil {
		// It is installed, which is what was asked; the answer must not say otherwise.
		p.log.WarnContext(ctx, "an installed policy is not in force in this instance yet",
			"policy", installed.ID, "version", installed.Version, "error", err)
	}
	return installed, changed, nil
}
