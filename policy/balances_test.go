package policy

import (
	"fmt"
	"testing"
)

func TestParseChangeTakesEveryRuleForBalances(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Change{
		string(withMembers(``)):                                      {},
		string(withMembers(`"balances":"keep",`)):                    {},
		string(withMembers(`"balances":"scale",`)):                   {Balances: Scale},
		string(withMembers(`"balances":"reset",`)):                   {Balances: Reset},
		string(withMembers(`"balances":"restart","start":"full",`)):  {Balances: Restart, Start: StartFull},
		string(withMembers(`"start":"empty","balances":"restart",`)): {Balances: Restart, Start: StartEmpty},
		withWindow("fixed_window", `"balances":"reset"`):             {Balances: Reset},
		withSlots(`"balances":"restart","start":"full"`):             {Balances: Restart, Start: StartFull},
	} {
		change, err := ParseChange([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if change.Balances != want.Balances || change.Start != want.Start {
			t.Errorf("%s: got %s, start %q", body, change.Balances, change.Start)
		}
	}
}

func TestParseChangeNamesWhatBalancesCannotDo(t *testing.T) {
	t.Parallel()
	for body, pointers := range map[string][]string{
		string(withMembers(`"balances":"restart",`)):                                {"/start"},
		string(withMembers(`"balances":"reset","start":"full",`)):                   {"/start"},
		string(withMembers(`"start":"empty",`)):                                     {"/start"},
		string(withMembers(`"balances":"restart","start":"",`)):                     {"/start"},
		string(withMembers(`"balances":"half","start":"half","mode":"half",`)):      {"/balances", "/start", "/mode"},
		withWindow("fixed_window", `"balances":"scale"`):                            {"/balances"},
		withWindow("sliding_window_log", `"balances":"scale","start":"full"`):       {"/start", "/balances"},
		withWindow("sliding_window_counter", `"balances":"restart","start":"half"`): {"/start"},
		withSlots(`"balances":"scale"`):                                             {"/balances"},
		withSlots(`"balances":"reset"`):                                             {"/balances"},
		withSlots(`"balances":"restart","start":"empty"`):                           {"/start"},
	} {
		_, err := ParseChange([]byte(body))
		t.Log(body)
		wantFaults(t, err, ReasonPolicyInvalid, pointers...)
	}
}

// withWindow is a policy of a window with some more members.
func withWindow(algorithm, members string) string {
	return fmt.Sprintf(`{"match":{},"per":[],"limit":{"algorithm":%q,"limit":1,"windowSeconds":1},%s}`, algorithm, members)
}

// withSlots is a policy of slots with some more members.
func withSlots(members string) string {
	return `{"match":{},"per":[],"limit":{"algorithm":"concurrency","limit":1,"ttlSeconds":1},` + members + `}`
}
