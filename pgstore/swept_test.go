package pgstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// noteSettled has the database note every bucket that is settled under a newer
// version, whoever does it.
func (b *bench) noteSettled() {
	b.Helper()
	b.exec(`CREATE TABLE public.settled (policy int, version int, clamped boolean)`)
	b.exec(`CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
		INSERT INTO public.settled
		SELECT NEW.policy, NEW.version, c.o_clamped FROM ration.carry_v1(OLD.policy, OLD.version, NEW.version, OLD.balance, OLD.at) AS c;
		RETURN NULL; END $$`)
	for _, table := range []string{"bucket_fast", "bucket_durable"} {
		b.exec("CREATE TRIGGER note AFTER UPDATE ON ration." + table + " FOR EACH ROW WHEN (OLD.version < NEW.version) EXECUTE FUNCTION public.note()")
	}
}

// sweepers runs two sweepers until over is closed.
func (b *bench) sweepers(over <-chan struct{}, now *atomic.Int64) *sync.WaitGroup {
	running := new(sync.WaitGroup)
	for range 2 {
		running.Go(func() {
			for !ended(over) {
				if _, _, err := b.store.Sweep(b.Context(), 1, epochMicros+now.Load()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	return running
}

// mix makes a call of one kind or the other on random keys, and settles what
// was decided in the round before: that row may be settled by nobody else yet.
func (b *bench) mix(
	session *pgstore.Session, random *rand.Rand, of [2]*policy.Installed, keys uint64, round, turn int, atMicros int64,
) error {
	if random.IntN(2) == 0 {
		batch := b.batch(of[random.IntN(2)], random.Uint64N(keys))
		batch.NowMicros = epochMicros + atMicros
		_, err := through(session, batch)
		return err
	}
	claimed := operating(fmt.Sprintf("%d-%d", round, turn), check(of[0], random.Uint64N(keys), 3), check(of[1], random.Uint64N(keys), 3))
	if _, err := decideClaims(session, b.claims(atMicros, claimed)); err != nil || round == 0 {
		return err
	}
	_, err := b.store.SettleAt(b.Context(), policy.Settlement{
		Operation: policy.OperationKeyOf("", "", fmt.Sprintf("%d-%d", round-1, turn)), ActualCost: random.Int64N(9),
	}, epochMicros+atMicros)
	if known, ok := errors.AsType[*policy.Error](err); ok && known.Code == policy.CodeNotFound {
		return nil // that turn was of the other kind
	}
	return err
}

// However pieces and calls of every kind mix, each balance that was there
// before a change is counted once: the audit says what a count of the rows'
// own changes says.
func TestSweepsAndDecisionsCountEachBalanceOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	random := newRandom(t)
	b.noteSettled()
	const keys, changes, turns = 700, 6, 80
	policies := make([]atomic.Pointer[policy.Installed], 2)
	setup := b.session()
	for i, durability := range []policy.Durability{policy.Fast, policy.Durable} {
		of := b.install(durability.String(), 0, shape{capacity: 1000, durability: durability}, 0)
		b.charge(setup, of, keys, second)
		policies[i].Store(of)
	}
	c := b.crew(4)
	var now atomic.Int64
	var calls sync.RWMutex // of the version in force: none of them runs on while it is replaced
	capacities := [changes]int64{999, 500, 800, 300, 301, 900}
	for round := range changes {
		at := int64(2+10*round) * second
		calls.Lock()
		for i := range policies {
			of := policies[i].Load()
			s := shape{capacity: capacities[round], durability: of.Spec.Durability}
			policies[i].Store(b.change(of, s, []policy.Balances{policy.Keep, policy.Scale}[random.IntN(2)], policy.StartNone, at))
		}
		now.Store(at + 2*second)
		calls.Unlock()
		// Decisions come first somewhere, down each path.
		for i := range policies {
			batch := b.batch(policies[i].Load(), 1, keys/2)
			batch.NowMicros = epochMicros + now.Load()
			b.decide(setup, batch)
			b.claim(setup, now.Load(), claim(check(policies[i].Load(), 2, 1)), claim(check(policies[i].Load(), keys-1, 1)))
		}
		if n := scalar[int](b, "SELECT sum(settled) FROM ration.carried WHERE version = $1", 2+round); n != 8 {
			t.Errorf("round %d: decisions have appended %d balances, want 8", round, n)
		}
		over := make(chan struct{})
		running := b.sweepers(over, &now)
		seed := random.Uint64()
		c.each(turns, func(session *pgstore.Session, turn int) error {
			calls.RLock()
			defer calls.RUnlock()
			random := rand.New(rand.NewPCG(seed, uint64(turn)))
			return b.mix(session, random, [2]*policy.Installed{policies[0].Load(), policies[1].Load()}, keys, round, turn, now.Load())
		})
		close(over)
		running.Wait()
		if round%2 == 1 {
			b.sweep(now.Load()) // else the next change overtakes it
		}
	}
	b.sweep(now.Load())
	b.sweptAsNoted()
}

// sweptAsNoted compares what the audit says of all sweeps with what was noted.
func (b *bench) sweptAsNoted() {
	b.Helper()
	got := scalar[string](b, `SELECT string_agg(format('%s %s: %s %s', policy, version_after, settled, clamped), '; ' ORDER BY policy, version_after)
		FROM ration.audit WHERE action = 'policy.swept'`)
	want := scalar[string](b, `SELECT string_agg(format('%s %s: %s %s', p.id, v.version, coalesce(n.settled, 0), coalesce(n.clamped, 0)), '; ' ORDER BY p.id, v.version)
		FROM ration.policy AS p JOIN ration.policy_version AS v USING (number)
		LEFT JOIN (SELECT s.policy, s.version, count(*) AS settled, count(*) FILTER (WHERE s.clamped) AS clamped
		           FROM public.settled AS s GROUP BY 1, 2) AS n ON n.policy = v.number AND n.version = v.version
		WHERE v.version > 1`)
	if got != want {
		b.Errorf("the audit says\n%s\nrows were settled\n%s", got, want)
	}
	b.Log(got)
}
