package pgstore

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rationhq/ration/policy"
)

// claimArguments holds the encoded parameters of one call of decide_v1, reused
// from call to call.
type claimArguments struct {
	cells []cell

	shard, generation, retention, hold, now           []byte
	operations, contents, stated, peeks               []byte // of each claim
	policies, keys                                    []byte // of each cell
	checkClaims, checkCells, checkCosts, checksPriced []byte // of each check
	values                                            [][]byte
}

// cell is one key of a call, with the policy it is kept by: however many
// claims ask it, its row is locked, read and written once.
type cell struct {
	key    policy.Key
	policy int32
}

func cellOf(check *policy.Check) cell { return cell{key: check.Key, policy: check.Policy.Number} }

func (c cell) compare(other cell) int {
	return cmp.Or(bytes.Compare(c.key[:], other.key[:]), cmp.Compare(c.policy, other.policy))
}

// encode gives the parameters of decide_v1 in their order.
func (a *claimArguments) encode(claims *policy.Claims, hold policy.Hold) [][]byte {
	a.shard = bareInt4(a.shard[:0], claims.Shard)
	a.generation = bareInt8(a.generation[:0], claims.Generation)
	a.retention = bareInt8(a.retention[:0], claims.RetentionMicros)
	a.encodeClaims(claims.Claims)
	checks := a.encodeCells(claims.Claims)
	a.encodeChecks(claims.Claims, checks)
	a.hold = append(a.hold[:0], hold.String()...)
	var now []byte
	if claims.NowMicros != 0 {
		a.now = bareInt8(a.now[:0], claims.NowMicros)
		now = a.now
	}
	a.values = append(a.values[:0], a.shard, a.generation, a.operations, a.contents, a.stated, a.peeks, a.policies, a.keys,
		a.checkClaims, a.checkCells, a.checkCosts, a.checksPriced, a.retention, a.hold, now)
	return a.values
}

// encodeClaims encodes what each claim asks as a whole.
func (a *claimArguments) encodeClaims(claims []policy.Claim) {
	a.operations = appendArrayHeader(a.operations[:0], pgtype.UUIDOID, len(claims))
	a.contents = appendArrayHeader(a.contents[:0], pgtype.UUIDOID, len(claims))
	a.stated = appendArrayHeader(a.stated[:0], pgtype.Int8OID, len(claims))
	a.peeks = appendArrayHeader(a.peeks[:0], pgtype.BoolOID, len(claims))
	for i := range claims {
		claim := &claims[i]
		if claim.Operation == (policy.Key{}) {
			a.operations = appendNull(a.operations)
			a.contents = appendNull(a.contents)
		} else {
			a.operations = appendUUID(a.operations, claim.Operation)
			a.contents = appendUUID(a.contents, claim.Content)
		}
		a.stated = appendInt8(a.stated, claim.Stated)
		a.peeks = appendBool(a.peeks, claim.Peek)
	}
}

// encodeCells gathers the distinct cells of all checks, ascending, encodes
// them and says how many checks there are.
func (a *claimArguments) encodeCells(claims []policy.Claim) (checks int) {
	a.cells = a.cells[:0]
	for i := range claims {
		for j := range claims[i].Checks {
			a.cells = append(a.cells, cellOf(&claims[i].Checks[j]))
		}
	}
	checks = len(a.cells)
	slices.SortFunc(a.cells, cell.compare)
	a.cells = slices.Compact(a.cells)
	a.policies = appendArrayHeader(a.policies[:0], pgtype.Int4OID, len(a.cells))
	a.keys = appendArrayHeader(a.keys[:0], pgtype.UUIDOID, len(a.cells))
	for i := range a.cells {
		a.policies = appendInt4(a.policies, a.cells[i].policy)
		a.keys = appendUUID(a.keys, a.cells[i].key)
	}
	return checks
}

// encodeChecks encodes the checks by the places of their claims and cells,
// which PostgreSQL counts from 1.
func (a *claimArguments) encodeChecks(claims []policy.Claim, checks int) {
	a.checkClaims = appendArrayHeader(a.checkClaims[:0], pgtype.Int4OID, checks)
	a.checkCells = appendArrayHeader(a.checkCells[:0], pgtype.Int4OID, checks)
	a.checkCosts = appendArrayHeader(a.checkCosts[:0], pgtype.Int8OID, checks)
	a.checksPriced = appendArrayHeader(a.checksPriced[:0], pgtype.BoolOID, checks)
	for i := range claims {
		for j := range claims[i].Checks {
			check := &claims[i].Checks[j]
			place, _ := slices.BinarySearchFunc(a.cells, cellOf(check), cell.compare)
			a.checkClaims = appendInt4(a.checkClaims, int32(i+1))
			a.checkCells = appendInt4(a.checkCells, int32(place+1)) //nolint:gosec // at most the checks of a call
			a.checkCosts = appendInt8(a.checkCosts, check.Cost)
			a.checksPriced = appendBool(a.checksPriced, check.Priced)
		}
	}
}
