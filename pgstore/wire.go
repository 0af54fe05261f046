package pgstore

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rationhq/ration/policy"
)

// The binary forms of the parameters and results of the decision functions.
// An array is its number of dimensions, whether it has NULLs, its element's
// type, then length and lower bound of the dimension and each element behind
// its length; all big-endian.

const arrayHeaderBytes = 20

// appendArrayHeader begins an array of one dimension without NULLs.
func appendArrayHeader(to []byte, elementType uint32, length int) []byte {
	to = binary.BigEndian.AppendUint32(to, 1)
	to = binary.BigEndian.AppendUint32(to, 0)
	to = binary.BigEndian.AppendUint32(to, elementType)
	to = binary.BigEndian.AppendUint32(to, uint32(length)) //nolint:gosec // at most the asks of a batch
	return binary.BigEndian.AppendUint32(to, 1)
}

func appendInt4(to []byte, value int32) []byte {
	to = binary.BigEndian.AppendUint32(to, 4)
	return binary.BigEndian.AppendUint32(to, uint32(value)) //nolint:gosec // two's complement is the wire form
}

func appendInt8(to []byte, value int64) []byte {
	to = binary.BigEndian.AppendUint32(to, 8)
	return binary.BigEndian.AppendUint64(to, uint64(value)) //nolint:gosec // two's complement is the wire form
}

// appendUUID appends an element of 128 bits.
func appendUUID(to []byte, key policy.Key) []byte {
	to = binary.BigEndian.AppendUint32(to, uint32(len(key)))
	return append(to, key[:]...)
}

func appendBool(to []byte, value bool) []byte {
	to = binary.BigEndian.AppendUint32(to, 1)
	if value {
		return append(to, 1)
	}
	return append(to, 0)
}

// nullLength is the length of an element that is NULL.
const nullLength = math.MaxUint32

// appendNull appends a NULL to an array, whose header comes to say so.
func appendNull(array []byte) []byte {
	binary.BigEndian.PutUint32(array[4:], 1)
	return binary.BigEndian.AppendUint32(array, nullLength)
}

// bareInt4 and bareInt8 are parameters that are no arrays.
func bareInt4(to []byte, value int32) []byte {
	return binary.BigEndian.AppendUint32(to, uint32(value)) //nolint:gosec // two's complement is the wire form
}

func bareInt8(to []byte, value int64) []byte {
	return binary.BigEndian.AppendUint64(to, uint64(value)) //nolint:gosec // two's complement is the wire form
}

// arguments holds the encoded parameters of one call, reused from call to call.
type arguments struct {
	shard, generation, policies, keys, costs, counts, now []byte
	values                                                [][]byte
}

// encode gives the parameters that every decision function begins with, in
// their order, and hold where it is one of them.
func (a *arguments) encode(batch *policy.Batch, hold []byte) [][]byte {
	n := len(batch.Asks)
	a.shard = bareInt4(a.shard[:0], batch.Shard)
	a.generation = bareInt8(a.generation[:0], batch.Generation)
	a.policies = appendArrayHeader(a.policies[:0], pgtype.Int4OID, n)
	a.keys = appendArrayHeader(a.keys[:0], pgtype.UUIDOID, n)
	a.costs = appendArrayHeader(a.costs[:0], pgtype.Int8OID, n)
	a.counts = appendArrayHeader(a.counts[:0], pgtype.Int4OID, n)
	for i := range batch.Asks {
		ask := &batch.Asks[i]
		a.policies = appendInt4(a.policies, ask.Policy)
		a.keys = appendUUID(a.keys, ask.Key)
		a.costs = appendInt8(a.costs, ask.Cost)
		a.counts = appendInt4(a.counts, ask.Count)
	}
	a.values = append(a.values[:0], a.shard, a.generation, a.policies, a.keys, a.costs, a.counts)
	if hold != nil {
		a.values = append(a.values, hold)
	}
	if batch.NowMicros == 0 {
		return append(a.values, nil)
	}
	a.now = bareInt8(a.now[:0], batch.NowMicros)
	return append(a.values, a.now)
}

var errResult = errors.New("the function's result has another form than this program knows")

// column is one array column of a result, read element by element.
type column struct {
	length   int
	size     int
	elements []byte
}

// readColumn checks an array's header; a NULL is an empty array.
func readColumn(value []byte, size int) (column, error) {
	if value == nil {
		return column{}, nil
	}
	if len(value) < arrayHeaderBytes || binary.BigEndian.Uint32(value) != 1 || binary.BigEndian.Uint32(value[4:]) != 0 {
		return column{}, errResult
	}
	c := column{length: int(binary.BigEndian.Uint32(value[12:])), size: 4 + size, elements: value[arrayHeaderBytes:]}
	if len(c.elements) != c.length*c.size {
		return column{}, errResult
	}
	return c, nil
}

func (c column) int4(i int) int32 {
	return int32(binary.BigEndian.Uint32(c.elements[i*c.size+4:])) //nolint:gosec // two's complement is the wire form
}

func (c column) int8(i int) int64 {
	return int64(binary.BigEndian.Uint64(c.elements[i*c.size+4:])) //nolint:gosec // two's complement is the wire form
}

func (c column) bool(i int) bool { return c.elements[i*c.size+4] != 0 }

// optional is one array column whose elements may be NULL, read one after the
// other.
type optional struct {
	length int
	rest   []byte
}

// readOptional checks an array's header and the length of every element; a
// NULL is an empty array.
func readOptional(value []byte, size int) (optional, error) {
	if value == nil {
		return optional{}, nil
	}
	if len(value) < arrayHeaderBytes || binary.BigEndian.Uint32(value) != 1 {
		return optional{}, errResult
	}
	o := optional{length: int(binary.BigEndian.Uint32(value[12:])), rest: value[arrayHeaderBytes:]}
	elements := 0
	for rest := o.rest; len(rest) > 0; elements++ {
		if len(rest) < 4 {
			return optional{}, errResult
		}
		length := binary.BigEndian.Uint32(rest)
		rest = rest[4:]
		if length == nullLength {
			continue
		}
		if int(length) != size || len(rest) < size {
			return optional{}, errResult
		}
		rest = rest[size:]
	}
	if elements != o.length {
		return optional{}, errResult
	}
	return o, nil
}

// next gives the next element, nil for a NULL. There are as many as length.
func (o *optional) next() []byte {
	length := binary.BigEndian.Uint32(o.rest)
	o.rest = o.rest[4:]
	if length == nullLength {
		return nil
	}
	element := o.rest[:length]
	o.rest = o.rest[length:]
	return element
}

// decode fills answers from the one row of a decision function's result:
// stale, now, element, admitted, remaining, retry_after, reset_after. Asks
// that it does not speak of are [policy.Again].
func decode(row [][]byte, asks int, answers *policy.Answers) error {
	if len(row) != 7 || len(row[0]) != 1 {
		return errResult
	}
	answers.Stale = row[0][0] != 0
	answers.Asks = answers.Asks[:0]
	if answers.Stale {
		return nil
	}
	for range asks {
		answers.Asks = append(answers.Asks, policy.Answer{Status: policy.Again})
	}
	if len(row[1]) != 8 {
		return errResult
	}
	answers.NowMicros = int64(binary.BigEndian.Uint64(row[1])) //nolint:gosec // two's complement is the wire form
	var columns [5]column
	for i, size := range [...]int{4, 4, 8, 8, 8} {
		var err error
		if columns[i], err = readColumn(row[2+i], size); err != nil {
			return err
		}
		if columns[i].length != columns[0].length {
			return errResult
		}
	}
	for i := range columns[0].length {
		element := int(columns[0].int4(i)) - 1 // PostgreSQL counts from 1
		if element < 0 || element >= asks {
			return errResult
		}
		if columns[1].int4(i) < 0 {
			answers.Asks[element].Status = policy.HeldByOther
			continue
		}
		answers.Asks[element] = policy.Answer{
			Status:           policy.Answered,
			Admitted:         columns[1].int4(i),
			Remaining:        columns[2].int8(i),
			RetryAfterMicros: columns[3].int8(i),
			ResetAfterMicros: columns[4].int8(i),
		}
	}
	return nil
}
