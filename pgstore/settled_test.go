package pgstore_test

import (
	"testing"

	"github.com/rationhq/ration/policy"
)

// A function of another form than this program knows is not believed.
func TestASettlementThatNobodyKnowsIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, answer := range []string{
		"o_status := 5; RETURN",
		"o_status := 0; o_at := 1; o_policy := '{1,2}'; o_version := '{1}'; o_charged := '{1}'; o_actual := '{1}'; o_applied := '{t}'; o_clamped := '{f}'; RETURN",
	} {
		b.exec(`CREATE OR REPLACE FUNCTION ration.settle_v1(
			p_shard int, p_operation uuid, p_actual bigint, p_now bigint DEFAULT NULL, OUT o_status int, OUT o_at bigint, OUT o_policy int[],
			OUT o_version int[], OUT o_charged bigint[], OUT o_actual bigint[], OUT o_applied boolean[], OUT o_clamped boolean[])
			LANGUAGE plpgsql AS $$ BEGIN ` + answer + `; END $$`)
		if settled, err := b.store.SettleAt(t.Context(), policy.Settlement{}, epochMicros); codeOf(err) != policy.CodeUnavailable {
			t.Errorf("%s: %+v, %v", answer, settled, err)
		}
	}
}
