package pgstore

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rationhq/ration/policy"
)

// claimsResult is a result of decide_v1 as the driver's codecs would read it, to be spoilt.
type claimsResult struct {
	stale                         bool
	now                           int64
	status                        []int32
	allowed                       []bool
	at                            []int64
	claim, policy, version        []int32
	admitted                      []bool
	remaining, retry, reset, cost []int64
	slot                          []pgtype.UUID
	slotExpires                   []pgtype.Int8
}

// someResult answers someClaims.
func someResult() claimsResult {
	return claimsResult{
		now: 77, status: []int32{1, 2, 0}, allowed: []bool{true, false, false}, at: []int64{77, 50, 0},
		claim: []int32{1, 1, 2}, policy: []int32{7, 8, 3}, version: []int32{4, 1, 2}, admitted: []bool{true, false, false},
		remaining: []int64{5, 0, 1}, retry: []int64{0, 9, policy.Never}, reset: []int64{3, 2, 1}, cost: []int64{1 << 50, 0, 4},
		slot: uuids(policy.Key{6}, policy.Key{}, policy.Key{}), slotExpires: []pgtype.Int8{{Int64: 99, Valid: true}, {}, {}},
	}
}

func (r *claimsResult) encode(t *testing.T) [][]byte {
	t.Helper()
	types := pgtype.NewMap()
	var row [][]byte
	for _, value := range []struct {
		oid   uint32
		value any
	}{
		{pgtype.BoolOID, r.stale},
		{pgtype.Int8OID, r.now},
		{pgtype.Int4ArrayOID, r.status},
		{pgtype.BoolArrayOID, r.allowed},
		{pgtype.Int8ArrayOID, r.at},
		{pgtype.Int4ArrayOID, r.claim},
		{pgtype.Int4ArrayOID, r.policy},
		{pgtype.Int4ArrayOID, r.version},
		{pgtype.BoolArrayOID, r.admitted},
		{pgtype.Int8ArrayOID, r.remaining},
		{pgtype.Int8ArrayOID, r.retry},
		{pgtype.Int8ArrayOID, r.reset},
		{pgtype.Int8ArrayOID, r.cost},
		{pgtype.UUIDArrayOID, r.slot},
		{pgtype.Int8ArrayOID, r.slotExpires},
	} {
		encoded, err := types.Encode(value.oid, pgtype.BinaryFormatCode, value.value, nil)
		if err != nil {
			t.Fatal(err)
		}
		row = append(row, encoded)
	}
	return row
}

func TestDecodeVerdicts(t *testing.T) {
	t.Parallel()
	claims := someClaims().Claims
	result := someResult()
	verdicts := policy.Verdicts{Stale: true, Verdicts: make([]policy.Verdict, 9)} // of an earlier call
	err := decodeVerdicts(result.encode(t), claims, &verdicts)
	want := policy.Verdicts{NowMicros: 77, Verdicts: []policy.Verdict{
		{Status: policy.ClaimDecided, Allowed: true, AtMicros: 77, Parts: []policy.Part{
			{
				Policy: 7, Version: 4, Allowed: true, Remaining: 5, ResetAfterMicros: 3, Cost: 1 << 50,
				Slot: policy.Slot{ID: policy.SlotID{6}, ExpiresAtMicros: 99},
			},
			{Policy: 8, Version: 1, RetryAfterMicros: 9, ResetAfterMicros: 2},
		}},
		{Status: policy.ClaimReplayed, AtMicros: 50, Parts: []policy.Part{
			{Policy: 3, Version: 2, Remaining: 1, RetryAfterMicros: policy.Never, ResetAfterMicros: 1, Cost: 4},
		}},
		{Status: policy.ClaimAgain},
	}}
	if diff := cmp.Diff(want, verdicts, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Error(err, diff)
	}
	result = claimsResult{stale: true}
	if err := decodeVerdicts(result.encode(t), claims, &verdicts); err != nil || !verdicts.Stale || len(verdicts.Verdicts) != 0 {
		t.Errorf("stale: %v, %+v", err, verdicts)
	}
	// Nothing was decided: NULL for every array of parts.
	result = claimsResult{status: []int32{6, 4, 5}, allowed: make([]bool, 3), at: make([]int64, 3)}
	if err := decodeVerdicts(result.encode(t), claims, &verdicts); err != nil || verdicts.Stale || len(verdicts.Verdicts) != 3 || verdicts.Verdicts[1].Status != policy.ClaimInProgress {
		t.Errorf("none decided: %v, %+v", err, verdicts)
	}
}

// A lane's calls come one after the other: neither their parameters nor their
// results are made anew.
func TestClaimsAreCodedWithoutAllocation(t *testing.T) { //nolint:paralleltest // allocations are the whole process's
	claims := someClaims()
	result := someResult()
	row := result.encode(t)
	var a claimArguments
	var verdicts policy.Verdicts
	once := func() {
		a.encode(claims, policy.HoldWait)
		if err := decodeVerdicts(row, claims.Claims, &verdicts); err != nil {
			t.Fatal(err)
		}
	}
	once()
	if n := testing.AllocsPerRun(100, once); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
	// What one claim's caller appends is none of the next one's.
	_ = append(verdicts.Verdicts[1].Parts, policy.Part{Policy: 99})
	once()
	if verdicts.Verdicts[1].Parts[0].Policy != 3 {
		t.Errorf("%+v", verdicts.Verdicts)
	}
}

func TestDecodeVerdictsRefusesOtherForms(t *testing.T) {
	t.Parallel()
	spoilt := func(spoil func(*claimsResult)) [][]byte {
		result := someResult()
		spoil(&result)
		return result.encode(t)
	}
	good := func() [][]byte { return spoilt(func(*claimsResult) {}) }
	const slots = 13
	cut := func(column, bytes int) [][]byte {
		row := good()
		row[column] = row[column][:len(row[column])-bytes]
		return row
	}
	set := func(column, at int, to uint32) [][]byte {
		row := good()
		binary.BigEndian.PutUint32(row[column][at:], to)
		return row
	}
	for name, row := range map[string][][]byte{
		"no row":                      nil,
		"a column less":               good()[:14],
		"a column more":               append(good(), nil),
		"NULL for stale":              append([][]byte{nil}, good()[1:]...),
		"an int4 for now":             cut(1, 4),
		"NULL for the statuses":       spoilt(func(r *claimsResult) { r.status = nil }),
		"a status too few":            spoilt(func(r *claimsResult) { r.status = r.status[:2] }),
		"a status too many":           spoilt(func(r *claimsResult) { r.status = append(r.status, 0) }),
		"an instant too few":          spoilt(func(r *claimsResult) { r.at = r.at[:2] }),
		"an unknown status":           spoilt(func(r *claimsResult) { r.status[2] = 7 }),
		"a status beyond a byte":      spoilt(func(r *claimsResult) { r.status[2] = 256 }),
		"a negative status":           spoilt(func(r *claimsResult) { r.status[2] = -1 }),
		"parts of a claim undecided":  spoilt(func(r *claimsResult) { r.status[0] = 0 }),
		"no parts of one decided":     spoilt(func(r *claimsResult) { r.status[2] = 1 }),
		"a replay of no operation":    spoilt(func(r *claimsResult) { r.status[0] = 2 }),
		"a part of another policy":    spoilt(func(r *claimsResult) { r.policy[1] = 9 }),
		"a part of claim 0":           spoilt(func(r *claimsResult) { r.claim[0] = 0 }),
		"a part of nobody's claim":    spoilt(func(r *claimsResult) { r.claim[2] = 4 }),
		"parts out of order":          spoilt(func(r *claimsResult) { r.claim[0], r.claim[2] = 2, 1 }),
		"a version too few":           spoilt(func(r *claimsResult) { r.version = r.version[:2] }),
		"a slot too few":              spoilt(func(r *claimsResult) { r.slot = r.slot[:2] }),
		"an expiry too few":           spoilt(func(r *claimsResult) { r.slotExpires = r.slotExpires[:2] }),
		"an expiry of no slot":        spoilt(func(r *claimsResult) { r.slotExpires[1].Valid = true }),
		"a slot without expiry":       spoilt(func(r *claimsResult) { r.slotExpires[0].Valid = false }),
		"NULL for the slots":          spoilt(func(r *claimsResult) { r.slot = nil }),
		"a slot cut short":            cut(slots, 1),
		"a length cut short":          set(slots, arrayHeaderBytes, 13),
		"the slots' header cut short": cut(slots, 5+16+4+4),
		"slots in two dimensions":     set(slots, 0, 2),
		"more slots than there are":   set(slots, 12, 1<<31),
		"int8 for a bool":             func() [][]byte { row := good(); row[8] = row[11]; return row }(),
		"a NULL among the versions":   set(7, 4, 1),
		"a slot of other length":      set(slots, arrayHeaderBytes, 12),
	} {
		var verdicts policy.Verdicts
		if err := decodeVerdicts(row, someClaims().Claims, &verdicts); !errors.Is(err, errResult) {
			t.Errorf("%s: %v, %+v", name, err, verdicts)
		}
	}
}

// FuzzDecodeVerdicts looks for a result that decodeVerdicts trusts more than
// it may.
func FuzzDecodeVerdicts(f *testing.F) {
	one := func(oid uint32, element []byte) []byte { return append(appendArrayHeader(nil, oid, 1), element...) }
	number, long, yes := one(pgtype.Int4OID, appendInt4(nil, 1)), one(pgtype.Int8OID, appendInt8(nil, 1)), one(pgtype.BoolOID, appendBool(nil, true))
	uuid := one(pgtype.UUIDOID, appendUUID(nil, policy.Key{1}))
	f.Add([]byte{0}, make([]byte, 8), number, yes, long, number, number, number, yes, long, long, long, long, uuid, long)
	f.Add([]byte{0}, make([]byte, 8), number, yes, long, number, number, number, yes, long, long, long, long, appendNull(appendArrayHeader(nil, pgtype.UUIDOID, 1)), uuid)
	f.Add([]byte{1}, []byte(nil), number, yes, long, []byte(nil), number, number, yes, long, long, long, long, uuid, long)
	claims := []policy.Claim{{Operation: policy.Key{1}, Checks: []policy.Check{{Policy: numbered(1), Cost: 1}}}}
	f.Fuzz(func(t *testing.T, stale, now, status, allowed, at, claim, of, version, admitted, remaining, retry, reset, cost, slot, expires []byte) {
		var verdicts policy.Verdicts
		err := decodeVerdicts([][]byte{stale, now, status, allowed, at, claim, of, version, admitted, remaining, retry, reset, cost, slot, expires}, claims, &verdicts)
		if err == nil && !verdicts.Stale && len(verdicts.Verdicts) != len(claims) {
			t.Errorf("%d verdicts for %d claims", len(verdicts.Verdicts), len(claims))
		}
	})
}
