package pgstore_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// minute of the tests' clock.
const minute = 60 * second

// listed gives the instances at an instant, each as its name, whether it lives
// and whether it is waited for.
func (b *bench) listed(atMicros int64) (list []string) {
	b.Helper()
	rows, err := b.service().Query(b.Context(), `SELECT format('%s %s %s %s', i.o_name, i.o_alive, i.o_awaited, i.o_generation)
		FROM ration.instances_v1($1) AS i`, atMicros)
	if err != nil {
		b.Fatal(err)
	}
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			b.Fatal(err)
		}
		list = append(list, line)
	}
	if rows.Err() != nil {
		b.Fatal(rows.Err())
	}
	return list
}

func (b *bench) confirm(instance *policy.Instance, atMicros int64) {
	b.Helper()
	if err := b.store.ConfirmAt(b.Context(), instance, atMicros); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) hasListed(what string, atMicros int64, want ...string) {
	b.Helper()
	if diff := cmp.Diff(want, b.listed(atMicros)); diff != "" {
		b.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestInstancesLiveAreLostAndAreForgotten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one := &policy.Instance{ID: policy.InstanceID{1}, Name: "one", Version: "1.0", Generation: 3}
	two := &policy.Instance{ID: policy.InstanceID{2}, Name: "two", Version: "1.0", Generation: 4}
	b.confirm(one, epochMicros)
	b.confirm(two, epochMicros+second)
	if one.StartedAtMicros != epochMicros || one.SeenAtMicros != epochMicros {
		t.Errorf("started at %d, seen at %d", one.StartedAtMicros, one.SeenAtMicros)
	}
	b.hasListed("just seen", epochMicros+second, "one t t 3", "two t t 4")
	one.Generation = 5
	b.confirm(one, epochMicros+2*second)
	if one.StartedAtMicros != epochMicros || one.SeenAtMicros != epochMicros+2*second {
		t.Errorf("started at %d, seen at %d, of one that goes on", one.StartedAtMicros, one.SeenAtMicros)
	}
	b.hasListed("5 s later", epochMicros+6*second, "one t t 5", "two t t 4")
	b.hasListed("a microsecond more", epochMicros+6*second+1, "one t t 5", "two f t 4")
	b.hasListed("15 s later", epochMicros+16*second, "one f t 5", "two f t 4")
	b.hasListed("a microsecond more", epochMicros+16*second+1, "one f t 5", "two f f 4")

	// After a step back of the clock, what was seen before is as old as it is ahead.
	b.hasListed("a minute before", epochMicros-minute, "one f f 5", "two f f 4")
	one.Generation = 1 // a store restored from a backup has fewer
	b.confirm(one, epochMicros-minute)
	b.hasListed("seen a minute before", epochMicros-minute, "one t t 1", "two f f 4")

	cleaned := func(atMicros int64, want int) {
		t.Helper()
		if deleted, err := b.store.Clean(t.Context(), 0, atMicros); err != nil || deleted != want {
			t.Errorf("%d deleted, want %d (%v)", deleted, want, err)
		}
	}
	b.confirm(one, epochMicros+minute)
	cleaned(epochMicros+second+10*minute, 0)
	cleaned(epochMicros+second+10*minute+1, 1)
	b.hasListed("when two is forgotten", epochMicros+minute, "one t t 1")
	if err := b.store.Leave(t.Context(), one.ID); err != nil {
		t.Fatal(err)
	}
	b.hasListed("when one has left", epochMicros+minute)
}

func TestInstallationOfAPolicy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install("other", 0, shape{capacity: 1}, 0)
	b.install("p", 0, shape{capacity: 1}, 0)
	p := b.install("p", 1, shape{capacity: 2}, 0)
	changedAt := b.generation()
	b.install("other", 1, shape{capacity: 2}, 0)
	one := &policy.Instance{ID: policy.InstanceID{1}, Name: "one", Version: "1.0", Generation: changedAt - 1}
	b.confirm(one, epochMicros)

	installation := func() policy.Installation {
		t.Helper()
		installation, err := b.store.Installation(t.Context(), "p")
		if err != nil {
			t.Fatal(err)
		}
		return installation
	}
	got := installation()
	if got.ID != "p" || got.Version != p.Version || got.Generation != changedAt || len(got.Instances) != 1 || got.Instances[0].Has(got.Generation) {
		t.Errorf("before it is confirmed: %+v", got)
	}
	one.Generation = changedAt // what came after it is of another policy
	b.confirm(one, epochMicros)
	if got := installation(); !got.Instances[0].Has(got.Generation) {
		t.Errorf("when it is confirmed: %+v", got)
	}
	if generation, instances, err := b.store.Instances(t.Context()); err != nil || generation != changedAt+1 || len(instances) != 1 {
		t.Errorf("generation %d of %+v (%v)", generation, instances, err)
	}
	if _, err := b.store.Installation(t.Context(), "none"); codeOf(err) != policy.CodeNotFound {
		t.Errorf("of no policy: %v", err)
	}
}

func TestTheStoreTellsOfItself(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	major, _ := pgstore.Schema()
	state, err := b.store.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if state.Database != b.db.Name || state.InRecovery || state.Generation != b.generation() || len(state.Losses) != 0 ||
		state.ServerVersion == "" || state.Schema != scalar[string](b, `SELECT format('%s.%s', $1::int, v.minor) FROM ration.schema_version AS v`, major) {
		t.Errorf("%+v", state)
	}
	b.exec(`DELETE FROM ration.incarnation_marker`)
	if found, err := b.store.Recover(t.Context()); err != nil || !found {
		t.Fatal(found, err)
	}
	after, err := b.store.State(t.Context())
	if err != nil || len(after.Losses) != 1 || after.Losses[0].FoundAtMicros == 0 || after.Incarnation == state.Incarnation {
		t.Errorf("after a loss: %+v (%v)", after, err)
	}
}
