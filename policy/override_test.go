package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// overridden is a policy by account with an override of each action: for
// accounts L, E and B.
func overridden(id string, mode Mode) *Installed {
	p := install(id, Spec{Per: []Attribute{Account}, Mode: mode, Costs: Costs{Default: 1}})
	limited := *p.Spec
	limited.Limit.Capacity = 7
	keyOf := func(id, account string) Key {
		var values [AttributeCount]string
		values[Account] = account
		return KeyOf(id, p.Spec, &values)
	}
	p.Overrides = map[Key]Override{
		keyOf(id, "L"): {
			Action: OverrideLimit, Key: keyOf(id+"!1", "L"),
			Limited: &Installed{Number: 9, ID: id, Version: 1, Spec: &limited, Mode: mode},
		},
		keyOf(id, "E"): {Action: OverrideExempt},
		keyOf(id, "B"): {Action: OverrideBlocked},
	}
	return p
}

func TestOverridesStandInTheirPolicysPlace(t *testing.T) {
	t.Parallel()
	set := Compile(1, []*Installed{overridden("a", Enforce), overridden("b", Shadow), install("c", Spec{Per: []Attribute{User}})})
	ids := func(policies []*Installed) string {
		var ids []string
		for _, policy := range policies {
			ids = append(ids, policy.ID)
		}
		return strings.Join(ids, "")
	}
	for _, c := range []struct {
		account, user                         string
		checks, exempt, blocked, denying, top string
	}{
		{"L", "", "a7 b7", "", "", "", ""},
		{"N", "", "a0 b0", "", "", "", ""},
		{"E", "", "", "ab", "", "", "a"},
		{"B", "", "", "", "ab", "a", "a"},
		{"E", "u", "c0", "ab", "", "", "a"},
		{"B", "u", "c0", "", "ab", "a", "a"},
	} {
		request := &Request{}
		request.Values[Account], request.Values[User], request.Values[Operation] = c.account, c.user, "x"
		for name, match := range map[string]func(*Request, *Matched) error{"match": set.Match, "usage": set.MatchUsage} {
			var m Matched
			if err := match(request, &m); err != nil {
				t.Fatalf("%s of %s: %v", name, c.account, err)
			}
			var checks []string
			for i := range m.Checks {
				checks = append(checks, m.Checks[i].Policy.ID+string('0'+byte(m.Checks[i].Policy.Spec.Limit.Capacity)))
			}
			got := []string{strings.Join(checks, " "), ids(m.Exempt), ids(m.Blocked), "", ""}
			if denying := m.Denying(); denying != nil {
				got[3] = denying.ID
			}
			if top := m.Unchecked(); top != nil {
				got[4] = top.ID
			}
			if want := []string{c.checks, c.exempt, c.blocked, c.denying, c.top}; !cmp.Equal(got, want) {
				t.Errorf("%s of %s %s: %q, want %q", name, c.account, c.user, got, want)
			}
			m.Reset()
			if m.Unchecked() != nil {
				t.Error("what was matched outlives a reset")
			}
		}
	}
	request := &Request{}
	request.Values[Account], request.Values[Operation] = "L", "x"
	var m Matched
	if err := set.Match(request, &m); err != nil || m.Checks[0].Key != KeyOf("a!1", m.Checks[0].Policy.Spec, &request.Values) {
		t.Errorf("another limit is kept under the key %x, %v", m.Checks[0].Key, err)
	}
	request.Values[Account] = "B"
	disabled := Compile(1, []*Installed{overridden("a", Disabled)})
	if err := disabled.Match(request, &m); err != nil || m.Denying() != nil || m.Disabled == nil {
		t.Errorf("a disabled policy blocks: %+v, %v", m, err)
	}
}

func TestWhoAnswersWhereNothingIsAsked(t *testing.T) {
	t.Parallel()
	disabled, exempt, blocked := new(Installed), new(Installed), new(Installed)
	for _, c := range []struct {
		matched Matched
		want    *Installed
	}{
		{Matched{}, nil},
		{Matched{Blocked: []*Installed{blocked}}, blocked},
		{Matched{Blocked: []*Installed{blocked}, Exempt: []*Installed{exempt, disabled}}, exempt},
		{Matched{Blocked: []*Installed{blocked}, Exempt: []*Installed{exempt}, Disabled: disabled}, disabled},
	} {
		if got := c.matched.Unchecked(); got != c.want {
			t.Errorf("%+v: another policy answers", c.matched)
		}
	}
}

func TestParseOverride(t *testing.T) {
	t.Parallel()
	const limit = `{"algorithm":"fixed_window","limit":5,"windowSeconds":60}`
	for body, want := range map[string]string{
		`{"action":"exempt","reason":"why"}`:                                           "",
		`{"action":"blocked","reason":"why","expiresInSeconds":31622400}`:              "",
		`{"action":"limit","reason":"why","limit":` + limit + `}`:                      "",
		`{"action":"exempt","reason":"why","expiresAt":"2030-01-02T03:04:05.000006Z"}`: "",
		``:                                  "empty",
		`{}`:                                "/action is required; /reason is required",
		`{"action":"exempt","reason":""}`:   "/reason must be 1 to 1000 bytes",
		`{"action":"lower","reason":"why"}`: "/action must be one of limit, exempt, blocked",
		`{"action":"limit","reason":"why"}`: "/limit is required for the action limit",
		`{"action":"exempt","reason":"why","limit":` + limit + `}`:                                   "/limit has no meaning",
		`{"action":"limit","reason":"why","limit":{"algorithm":"fixed_window","limit":0}}`:           "/limit/limit must be at least 1; /limit/windowSeconds is required",
		`{"action":"exempt","reason":"why","expiresInSeconds":31622401}`:                             "/expiresInSeconds must be at most 31622400",
		`{"action":"exempt","reason":"why","expiresAt":"tomorrow"}`:                                  "/expiresAt must be an instant",
		`{"action":"exempt","reason":"why","expiresAt":"2030-01-02T03:04:05Z","expiresInSeconds":1}`: "/expiresInSeconds has no meaning",
		`{"action":"exempt","reason":"why","account":"A"}`:                                           "/account is not a known member",
	} {
		put, err := ParseOverride([]byte(body))
		if want == "" {
			if err != nil || put.Reason != "why" {
				t.Errorf("%s: %+v, %v", body, put, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	put, err := ParseOverride([]byte(`{"action":"limit","reason":"why","limit":` + limit + `,"expiresAt":"2030-01-02T03:04:05.000006+01:00"}`))
	if err != nil || put.ExpiresAtMicros != 1_893_549_845_000_006 || string(put.Limit.JSON()) != limit {
		t.Errorf("%+v, %v", put, err)
	}
	if again, err := ParseLimit(put.Limit.JSON()); err != nil || !cmp.Equal(again.JSON(), put.Limit.JSON()) {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestParseKillSwitch(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"prefix":"report","forSeconds":600,"reason":"why"}`: "",
		`{"prefix":"","forSeconds":86400,"reason":"why"}`:     "",
		`{"forSeconds":86401}`:                                "/forSeconds must be at most 86400; /prefix is required; /reason is required",
		`{"prefix":"a!1","forSeconds":1,"reason":"why"}`:      "/prefix must be what a policy's id begins with",
		`{"prefix":"a","forSeconds":0.5,"reason":"why"}`:      "/forSeconds must be a whole number",
	} {
		throw, err := ParseKillSwitch([]byte(body))
		if want == "" && (err != nil || throw.LastsMicros < 600_000_000) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %+v, %v, want %s", body, throw, err, want)
		}
	}
}
