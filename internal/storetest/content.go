package storetest

import (
	"fmt"
	"strconv"

	"github.com/rationhq/ration/policy"
)

// changeTo is a policy change to a limit, which is JSON.
func changeTo(d policy.Durability, m policy.Mode, limit string) (*policy.Change, error) {
	return policy.ParseChange(fmt.Appendf(nil,
		`{"match": {"operations": ["storetest"]}, "per": ["account"], "durability": %q, "mode": %q, "limit": %s}`,
		d, m, limit))
}

// tokenBucket is the JSON of a token bucket's limit, as are its figures.
func tokenBucket(capacity, refillTokens, refillSeconds string) string {
	return fmt.Sprintf(`{"algorithm": "token_bucket", "capacity": %s, "refillTokens": %s, "refillSeconds": %s}`,
		capacity, refillTokens, refillSeconds)
}

// bucketOf is a token bucket of so many tokens.
func bucketOf(capacity int64, refillTokens, refillSeconds string) string {
	return tokenBucket(strconv.FormatInt(capacity, 10), refillTokens, refillSeconds)
}

// window is the JSON of a window's limit. windowSeconds is JSON.
func window(a policy.Algorithm, strict bool, limit int64, windowSeconds string) string {
	members := ""
	if strict {
		members = `, "strict": true`
	}
	return fmt.Sprintf(`{"algorithm": %q, "limit": %d, "windowSeconds": %s%s}`, a, limit, windowSeconds, members)
}

// concurrency is the JSON of a limit on slots. ttlSeconds is JSON.
func concurrency(limit int64, ttlSeconds string) string {
	return fmt.Sprintf(`{"algorithm": "concurrency", "limit": %d, "ttlSeconds": %s}`, limit, ttlSeconds)
}

// seconds is a duration in JSON.
func seconds(micros int64) string { return fmt.Sprintf("%d.%06d", micros/second, micros%second) }
