package pgstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rationhq/ration/policy"
)

// What is bound by hand is what pgx's own codecs would send.
func TestEncodeAgreesWithTheDriver(t *testing.T) {
	t.Parallel()
	batch := &policy.Batch{Shard: 3, Generation: 1 << 40, NowMicros: -5, Asks: []policy.Ask{
		{Key: policy.Key{1, 2, 15: 3}, Policy: 7, Cost: 1 << 50, Count: 2}, {Key: policy.Key{255}, Policy: -1, Cost: 1, Count: 0},
	}}
	var a arguments
	got := a.encode(batch, []byte("skip"))
	types := pgtype.NewMap()
	var want [][]byte
	for _, value := range []struct {
		oid   uint32
		value any
	}{
		{pgtype.Int4OID, int32(3)},
		{pgtype.Int8OID, int64(1) << 40},
		{pgtype.Int4ArrayOID, []int32{7, -1}},
		{pgtype.UUIDArrayOID, [][16]byte{batch.Asks[0].Key, batch.Asks[1].Key}},
		{pgtype.Int8ArrayOID, []int64{1 << 50, 1}},
		{pgtype.Int4ArrayOID, []int32{2, 0}},
		{pgtype.TextOID, "skip"},
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
	// The buffers are used again: a smaller batch, no hold, no clock of the caller's.
	batch.NowMicros, batch.Asks = 0, batch.Asks[1:]
	got = a.encode(batch, nil)
	if len(got) != 7 || got[6] != nil || !bytes.Equal(got[3][arrayHeaderBytes+4:], batch.Asks[0].Key[:]) {
		t.Errorf("%x", got)
	}
}

// row makes the row of a result.
func row(t *testing.T, stale bool, now int64, element, admitted []int32, figures ...[]int64) [][]byte {
	t.Helper()
	types := pgtype.NewMap()
	encode := func(oid uint32, value any) []byte {
		encoded, err := types.Encode(oid, pgtype.BinaryFormatCode, value, nil)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	made := [][]byte{encode(pgtype.BoolOID, stale), encode(pgtype.Int8OID, now), encode(pgtype.Int4ArrayOID, element), encode(pgtype.Int4ArrayOID, admitted)}
	for _, f := range figures {
		made = append(made, encode(pgtype.Int8ArrayOID, f))
	}
	return made
}

func TestDecode(t *testing.T) {
	t.Parallel()
	answers := policy.Answers{Stale: true, Asks: make([]policy.Answer, 9)} // of an earlier call
	err := decode(row(t, false, 77, []int32{3, 1}, []int32{2, -1}, []int64{5, 0}, []int64{policy.Never, 0}, []int64{9, 0}), 3, &answers)
	want := policy.Answers{NowMicros: 77, Asks: []policy.Answer{
		{Status: policy.HeldByOther},
		{Status: policy.Again},
		{Status: policy.Answered, Admitted: 2, Remaining: 5, RetryAfterMicros: policy.Never, ResetAfterMicros: 9},
	}}
	if diff := cmp.Diff(want, answers); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if err := decode([][]byte{{1}, nil, nil, nil, nil, nil, nil}, 3, &answers); err != nil || !answers.Stale || len(answers.Asks) != 0 {
		t.Errorf("stale: %v, %+v", err, answers)
	}
	// Nothing was decided: NULL for every array.
	if err := decode([][]byte{{0}, make([]byte, 8), nil, nil, nil, nil, nil}, 2, &answers); err != nil || answers.Stale || len(answers.Asks) != 2 {
		t.Errorf("none decided: %v, %+v", err, answers)
	}
}

func TestDecodeRefusesOtherForms(t *testing.T) {
	t.Parallel()
	good := func() [][]byte {
		return row(t, false, 1, []int32{1}, []int32{1}, []int64{1}, []int64{1}, []int64{1})
	}
	for name, spoil := range map[string]func([][]byte) [][]byte{
		"a column more":      func(r [][]byte) [][]byte { return append(r, nil) },
		"a column less":      func(r [][]byte) [][]byte { return r[:6] },
		"no row":             func([][]byte) [][]byte { return nil },
		"NULL for stale":     func(r [][]byte) [][]byte { r[0] = nil; return r },
		"NULL for now":       func(r [][]byte) [][]byte { r[1] = nil; return r },
		"an int4 for now":    func(r [][]byte) [][]byte { r[1] = r[1][:4]; return r },
		"one array is NULL":  func(r [][]byte) [][]byte { r[6] = nil; return r },
		"elements are NULL":  func(r [][]byte) [][]byte { r[2] = nil; return r },
		"int4 for int8":      func(r [][]byte) [][]byte { r[4] = r[2]; return r },
		"int8 for int4":      func(r [][]byte) [][]byte { r[2] = r[4]; return r },
		"an array cut short": func(r [][]byte) [][]byte { r[5] = r[5][:len(r[5])-1]; return r },
		"a header cut short": func(r [][]byte) [][]byte { r[5] = r[5][:arrayHeaderBytes-1]; return r },
		"element 0": func([][]byte) [][]byte {
			return row(t, false, 1, []int32{0}, []int32{1}, []int64{1}, []int64{1}, []int64{1})
		},
		"an element of nobody": func([][]byte) [][]byte {
			return row(t, false, 1, []int32{3}, []int32{1}, []int64{1}, []int64{1}, []int64{1})
		},
		"arrays of other lengths": func([][]byte) [][]byte {
			return row(t, false, 1, []int32{1, 2}, []int32{1}, []int64{1}, []int64{1}, []int64{1})
		},
		"a NULL in an array":      func(r [][]byte) [][]byte { binary.BigEndian.PutUint32(r[3][4:], 1); return r },
		"two dimensions":          func(r [][]byte) [][]byte { binary.BigEndian.PutUint32(r[3], 2); return r },
		"a length beyond the end": func(r [][]byte) [][]byte { binary.BigEndian.PutUint32(r[3][12:], 1<<31); return r },
	} {
		var answers policy.Answers
		if err := decode(spoil(good()), 2, &answers); !errors.Is(err, errResult) {
			t.Errorf("%s: %v, %+v", name, err, answers)
		}
	}
}

// FuzzDecode looks for a result that decode trusts more than it may.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{0}, make([]byte, 8), []byte(nil), []byte(nil), []byte(nil), []byte(nil), []byte(nil), uint8(1))
	one4 := appendInt4(appendArrayHeader(nil, pgtype.Int4OID, 1), 1)
	one8 := appendInt8(appendArrayHeader(nil, pgtype.Int8OID, 1), 1)
	f.Add([]byte{0}, make([]byte, 8), one4, one4, one8, one8, one8, uint8(1))
	f.Add([]byte{1}, make([]byte, 8), one4, one4, one8, one8, one8[:20], uint8(0))
	f.Add([]byte{0}, make([]byte, 8), one8, one4, one8, one8, one4, uint8(200))
	f.Fuzz(func(t *testing.T, stale, now, element, admitted, remaining, retry, reset []byte, asks uint8) {
		var answers policy.Answers
		err := decode([][]byte{stale, now, element, admitted, remaining, retry, reset}, int(asks), &answers)
		if err == nil && !answers.Stale && len(answers.Asks) != int(asks) {
			t.Errorf("%d answers for %d asks", len(answers.Asks), asks)
		}
	})
}
