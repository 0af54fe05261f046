package pgstore_test

import (
	"errors"
	"testing"

	"github.com/rationhq/ration/policy"
)

// expire ends what is over at an instant, and says how many that were.
func (b *bench) expire(atMicros int64) int {
	b.Helper()
	ended, err := b.store.ExpireAt(b.Context(), epochMicros+atMicros)
	if err != nil {
		b.Fatal(err)
	}
	return ended
}

// However many are due, they end in pieces, so that none holds up whoever
// changes a policy; each is in the audit once, and the oldest are first.
func TestManyOverridesExpireInPieces(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install("p", 0, shape{capacity: 10}, 0)
	b.exec(`INSERT INTO ration.override (policy, key, attributes, action, expires_at, actor, reason, created_at, generation)
		SELECT p.number, gen_random_uuid(), json_build_object('account', early::text), 'exempt', $1::bigint - early, 'operator', 'why', 1, 1
		FROM ration.policy AS p, generate_series(1, 450) AS early`, epochMicros+second)
	for _, want := range []int{200, 200, 50, 0} {
		if ended := b.expire(second); ended != want {
			t.Errorf("%d ended at once, want %d", ended, want)
		}
	}
	got := scalar[string](b, `SELECT concat_ws(' ', count(*), count(DISTINCT a.before #>> '{attributes,account}'),
		min((a.before #>> '{attributes,account}')::int) FILTER (WHERE a.id <= 201)) FROM ration.audit AS a WHERE a.action = 'override.expired'`)
	if got != "450 450 251" {
		t.Errorf("audit: %s", got)
	}
}

// An override ends at its instant on the store's clock, once, as if it had been
// removed.
func TestOverridesExpireOnTheStoresClock(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := shape{capacity: 10}
	b.install("p", 0, s, 0)
	put := b.overridePut("p", "A", b.limitOf(s, 100))
	put.LastsMicros = 60 * second
	record, created, _, err := b.store.PutOverrideAt(t.Context(), put, epochMicros+second)
	if err != nil || !created || record.ExpiresAtMicros != epochMicros+61*second {
		t.Fatalf("%+v, %t, %v", record, created, err)
	}
	put = b.overridePut("p", "B", `{"action": "blocked", "reason": "why"}`)
	put.ExpiresAtMicros = epochMicros + 61*second
	if _, _, _, err := b.store.PutOverrideAt(t.Context(), put, epochMicros+second); err != nil {
		t.Fatal(err)
	}
	b.override("p", "C", `{"action": "exempt", "reason": "why"}`, second)
	b.spend("A", 4, 2*second)
	before := b.generation()
	if ended := b.expire(61*second - 1); ended != 0 || b.generation() != before {
		t.Errorf("%d ended before their time, generation %d after %d", ended, b.generation(), before)
	}
	if ended := b.expire(61 * second); ended != 2 || b.generation() != before+1 {
		t.Errorf("%d ended in their time, generation %d after %d", ended, b.generation(), before)
	}
	if ended := b.expire(61 * second); ended != 0 || b.generation() != before+1 {
		t.Errorf("%d ended once more", ended)
	}
	if got := b.left("A", 61*second); got != 6 {
		t.Errorf("%d are left of what the override held", got)
	}
	if matched := b.matchedBy("B"); len(matched.Checks) != 1 {
		t.Errorf("blocked still: %+v", matched)
	}
	if matched := b.matchedBy("C"); len(matched.Exempt) != 1 {
		t.Errorf("what does not expire: %+v", matched)
	}
	const want = "ration override.expired A limit 100; ration override.expired B blocked"
	if got := scalar[string](b, `SELECT string_agg(concat_ws(' ', a.actor, a.action, a.before #>> '{attributes,account}', a.before ->> 'action',
		a.before #>> '{limit,capacity}'), '; ' ORDER BY a.id) FROM ration.audit AS a WHERE a.actor = 'ration'`); got != want {
		t.Errorf("audit: %s", got)
	}
}

// throwFor throws a kill switch at an instant.
func (b *bench) throwFor(prefix string, lastsMicros, atMicros int64) {
	b.Helper()
	b.exec("SELECT ration.put_kill_switch_v1($1, $2, 'ann', 'admin', 'why', 'r1', $3)", prefix, lastsMicros, epochMicros+atMicros)
}

// modes gives the modes in force, as instances load them, by id.
func (b *bench) modes() map[string]policy.Mode {
	b.Helper()
	_, all, err := b.store.Load(b.Context(), 0)
	if err != nil {
		b.Fatal(err)
	}
	modes := make(map[string]policy.Mode)
	for _, installed := range all {
		modes[installed.ID] = installed.Mode
		for _, override := range installed.Overrides {
			if override.Limited != nil && override.Limited.Mode != installed.Mode {
				b.Errorf("an override of %s is in mode %s", installed.ID, override.Limited.Mode)
			}
		}
	}
	return modes
}

// A kill switch makes enforced policies of its prefix shadows, those that
// change or come meanwhile too, until it expires or is taken back; what they
// count goes on.
func TestKillSwitches(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install("report-a", 0, shape{capacity: 1}, 0)
	b.install("report-b", 0, shape{capacity: 1, shadow: true}, 0)
	b.install("sign-in", 0, shape{capacity: 1}, 0)
	b.override("report-a", "A", b.limitOf(shape{}, 2), 0)
	has := func(what string, want map[string]policy.Mode) {
		t.Helper()
		got := b.modes()
		for id, mode := range want {
			if got[id] != mode {
				t.Errorf("%s: %s is in mode %s", what, id, got[id])
			}
		}
		for number, mode := range map[string]string{"report-a": got["report-a"].String(), "sign-in": got["sign-in"].String()} {
			if stored := scalar[string](b, "SELECT string_agg(DISTINCT mode, ' ') FROM ration.policy WHERE starts_with(id, $1)", number); stored != mode {
				t.Errorf("%s: the store decides %s in mode %s", what, number, stored)
			}
		}
	}
	b.throwFor("report", 60*second, 0)
	has("thrown", map[string]policy.Mode{"report-a": policy.Shadow, "report-b": policy.Shadow, "sign-in": policy.Enforce})
	if installed, err := b.store.Get(t.Context(), "report-a"); err != nil || installed.Mode != policy.Shadow || installed.Spec.Mode != policy.Enforce {
		t.Errorf("read: %+v, %v", installed, err)
	}
	session := b.session()
	check := b.matchedBy("A").Checks[0]
	for _, allowed := range []bool{true, false} { // the override began with the one token that the key had
		verdict := b.claim(session, second, claim(check))[0]
		if !verdict.Allowed || verdict.Parts[0].Allowed != allowed {
			t.Errorf("decided %+v, want a part that is allowed: %t", verdict, allowed)
		}
	}
	b.install("report-a", 1, shape{capacity: 2}, second)
	b.install("report-c", 0, shape{capacity: 1}, second)
	has("changed meanwhile", map[string]policy.Mode{"report-a": policy.Shadow, "report-c": policy.Shadow})
	b.throwFor("", 30*second, second)
	has("over all", map[string]policy.Mode{"sign-in": policy.Shadow})
	if ended := b.expire(31 * second); ended != 1 {
		t.Errorf("%d ended", ended)
	}
	has("one of two over", map[string]policy.Mode{"report-a": policy.Shadow, "report-b": policy.Shadow, "sign-in": policy.Enforce})
	taken := policy.KillSwitchReturn{Prefix: "report", Author: policy.Author{Actor: "ann"}}
	if _, err := b.store.TakeBackKillSwitch(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	has("taken back", map[string]policy.Mode{"report-a": policy.Enforce, "report-b": policy.Shadow, "report-c": policy.Enforce})
	var missing *policy.Error
	if _, err := b.store.TakeBackKillSwitch(t.Context(), taken); !errors.As(err, &missing) || missing.Reason != policy.ReasonNotFound {
		t.Errorf("taken back twice: %v", err)
	}
	lies, policies, _, err := b.store.ThrowKillSwitch(t.Context(), policy.KillSwitchThrow{Prefix: "report", LastsMicros: second, Reason: "why", Author: policy.Author{Actor: "ann"}})
	if err != nil || policies != 2 || lies.ExpiresAtMicros-lies.CreatedAtMicros != second {
		t.Errorf("thrown over %d policies: %+v, %v", policies, lies, err)
	}
	if all, err := b.store.KillSwitches(t.Context()); err != nil || len(all) != 1 || all[0].Prefix != "report" {
		t.Errorf("listed: %+v, %v", all, err)
	}
	const want = "kill-switch.thrown kill-switch.thrown kill-switch.expired kill-switch.taken-back kill-switch.thrown"
	if got := scalar[string](b, `SELECT string_agg(a.action, ' ' ORDER BY a.id) FROM ration.audit AS a WHERE a.action LIKE 'kill%'`); got != want {
		t.Errorf("audit: %s", got)
	}
}
