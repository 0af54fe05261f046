package storetest

import (
	_ "embed"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/rationhq/ration/policy"
)

//go:embed testdata/logins.csv
var logins []byte

// loginPolicies are the ones a sign-in has to pass, ascending by id: of the
// account aimed at, of the pair, and of the address, whose network of /64
// counts.
var loginPolicies = []loginPolicy{
	{id: "login-account", per: `["targetAccount"]`, limit: 5, window: 900},
	{id: "login-both", per: `["ip", "targetAccount"]`, limit: 3, window: 60},
	{id: "login-ip", per: `["ip"]`, limit: 6, window: 900},
}

type loginPolicy struct {
	id, per       string
	limit, window int64 // attempts, seconds
}

func (p loginPolicy) change() (*policy.Change, error) {
	return policy.ParseChange(fmt.Appendf(nil,
		`{"match": {"operations": ["login"]}, "per": %s, "onMissing": "reject", "durability": "durable", "limit": %s}`,
		p.per, slidingLog(p.limit, fmt.Sprint(p.window))))
}

// ReplayLogins asks a store for every sign-in attempt at a machine under
// password guessing, in the log's own time, under three exact limits at once.
// Every answer has to be the one that lists of instants give. No two attempts
// come from one address, only from the same network, and account names are
// spelled differently in turns.
func ReplayLogins(tb testing.TB, store Store) {
	tb.Helper()
	s := newScene(tb, func(testing.TB) Store { return store }, policy.Durable)
	for _, p := range loginPolicies {
		change, err := p.change()
		if err != nil {
			tb.Fatalf("policy %s: %v", p.id, err)
		}
		if s.policies[p.id], err = store.Install(s.Context(), p.id, change, 0, epochMicros); err != nil {
			tb.Fatalf("install %s: %v", p.id, err)
		}
	}
	s.reload()
	policies, err := store.Policies(s.Context())
	if err != nil {
		tb.Fatalf("read the policies: %v", err)
	}
	set := policy.Compile(s.generation, policies)

	lists := map[string][]int64{} // instants of what was allowed, in seconds
	attempts, denied := 0, map[string]int{}
	eachLine(tb, logins, func(at int64, line []string) { // offset_s, ip, target_account, result
		ip, account := line[1], line[2]
		got := s.claim(at*second, s.attempt(set, attempts, ip, account)...)
		attempts++
		keys := []string{account, ip + " " + account, ip}
		allowed := true
		for i, p := range loginPolicies {
			allowed = allowed && p.used(lists[keys[i]], at) < p.limit
		}
		for i, p := range loginPolicies {
			want := policy.Part{Policy: got.Parts[i].Policy, Version: 1}
			used := p.used(lists[keys[i]], at)
			if want.Allowed = used < p.limit; !want.Allowed {
				oldest := lists[keys[i]][int64(len(lists[keys[i]]))-p.limit]
				want.RetryAfterMicros = (oldest + p.window - at) * second
				denied[p.id]++
			}
			if allowed {
				lists[keys[i]] = append(lists[keys[i]], at)
				used++
				want.Cost = 1
			}
			want.Remaining = p.limit - used
			if used > 0 {
				list := lists[keys[i]]
				want.ResetAfterMicros = (list[len(list)-1] + p.window - at) * second
			}
			if got.Parts[i] != want || got.Allowed != allowed {
				tb.Fatalf("attempt %d, %s at %s, %d s: allowed %t, %+v, want allowed %t, %+v",
					attempts, ip, account, at, got.Allowed, got.Parts[i], allowed, want)
			}
		}
	})
	tb.Logf("%d attempts, %d keys, denied by policy: %v", attempts, len(lists), denied)
}

// used is how many instants of a list count.
func (p loginPolicy) used(list []int64, at int64) (used int64) {
	for _, made := range list {
		if made > at-p.window {
			used++
		}
	}
	return used
}

// attempt gives the checks of one attempt, as the request of a gateway has
// them: from another address of the network 2001:db8:… each time.
func (s *scene) attempt(set *policy.Set, number int, ip, account string) []policy.Check {
	s.Helper()
	v4, err := netip.ParseAddr(ip)
	if err != nil {
		s.Fatalf("read the log: %v", err)
	}
	octets := v4.As4()
	if number%2 == 1 {
		account = " " + strings.ToUpper(account)
	}
	request, err := policy.ParseRequest(fmt.Appendf(nil, `{"operation": "login", "ip": "2001:db8:%x:%x::%x", "targetAccount": %q}`,
		octets[2], octets[3], number+1, account))
	if err != nil {
		s.Fatalf("attempt %d: %v", number+1, err)
	}
	var matched policy.Matched
	if err := set.Match(request, &matched); err != nil {
		s.Fatalf("attempt %d: %v", number+1, err)
	}
	return matched.Checks
}
