package pgstore

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rationhq/ration/policy"
)

// numbered is a policy of which only the store's number matters here.
func numbered(number int32) *policy.Installed { return &policy.Installed{Number: number} }

// uuids are elements of a uuid array; the zero Key is a NULL.
func uuids(keys ...policy.Key) []pgtype.UUID {
	elements := make([]pgtype.UUID, len(keys))
	for i, key := range keys {
		elements[i] = pgtype.UUID{Bytes: key, Valid: key != policy.Key{}}
	}
	return elements
}

func someClaims() *policy.Claims {
	return &policy.Claims{
		Shard: 3, Generation: 1 << 40, NowMicros: -5, RetentionMicros: 600_000_000,
		Claims: []policy.Claim{
			{Stated: 7, Checks: []policy.Check{
				{Policy: numbered(7), Key: policy.Key{9}, Cost: 1 << 50, Priced: true},
				{Policy: numbered(8), Key: policy.Key{1}, Cost: 1},
			}},
			{Operation: policy.Key{1, 2, 15: 3}, Content: policy.Key{4}},
			{Peek: true, Checks: []policy.Check{{Policy: numbered(7), Key: policy.Key{9}, Cost: 2}, {Policy: numbered(9), Key: policy.Key{5}, Cost: 3}}},
		},
	}
}

// What is bound by hand is what pgx's own codecs would send, with every key
// once and ascending.
func TestEncodeClaimsAgreesWithTheDriver(t *testing.T) {
	t.Parallel()
	claims := someClaims()
	var a claimArguments
	got := a.encode(claims, policy.HoldAlone)
	types := pgtype.NewMap()
	var want [][]byte
	for _, value := range []struct {
		oid   uint32
		value any
	}{
		{pgtype.Int4OID, int32(3)},
		{pgtype.Int8OID, int64(1) << 40},
		{pgtype.UUIDArrayOID, uuids(policy.Key{}, policy.Key{1, 2, 15: 3}, policy.Key{})},
		{pgtype.UUIDArrayOID, uuids(policy.Key{}, policy.Key{4}, policy.Key{})},
		{pgtype.Int8ArrayOID, []int64{7, 0, 0}},
		{pgtype.BoolArrayOID, []bool{false, false, true}},
		{pgtype.Int4ArrayOID, []int32{8, 9, 7}},
		{pgtype.UUIDArrayOID, uuids(policy.Key{1}, policy.Key{5}, policy.Key{9})},
		{pgtype.Int4ArrayOID, []int32{1, 1, 3, 3}},
		{pgtype.Int4ArrayOID, []int32{3, 1, 3, 2}},
		{pgtype.Int8ArrayOID, []int64{1 << 50, 1, 2, 3}},
		{pgtype.BoolArrayOID, []bool{true, false, false, false}},
		{pgtype.Int8OID, int64(600_000_000)},
		{pgtype.TextOID, "alone"},
		{pgtype.Int8OID, int64(-5)},
	} {
		encoded, err := types.Encode(value.oid, pgtype.BinaryFormatCode, value.value, nil)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, encoded)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// The buffers are used again: fewer claims, all with operation ids, and no clock of the caller's.
	claims.NowMicros, claims.Claims = 0, claims.Claims[1:2]
	got = a.encode(claims, policy.HoldWait)
	if len(got) != 15 || got[14] != nil || string(got[13]) != "wait" || len(got[7]) != arrayHeaderBytes || !slices.Equal(got[2][4:8], make([]byte, 4)) {
		t.Errorf("%x", got)
	}
}

// A key of two policies would be decided as a key of one: the function is to
// see both, and to refuse.
func TestAKeyOfTwoPoliciesIsTwoCells(t *testing.T) {
	t.Parallel()
	var a claimArguments
	a.encode(&policy.Claims{Claims: []policy.Claim{{Checks: []policy.Check{
		{Policy: numbered(2), Key: policy.Key{1}, Cost: 1}, {Policy: numbered(1), Key: policy.Key{1}, Cost: 1},
	}}}}, policy.HoldWait)
	if want := []cell{{policy.Key{1}, 1}, {policy.Key{1}, 2}}; !slices.Equal(a.cells, want) {
		t.Errorf("%v, want %v", a.cells, want)
	}
}
