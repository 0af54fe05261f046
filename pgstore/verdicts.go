package pgstore

import (
	"encoding/binary"

	"github.com/rationhq/ration/policy"
)

// decodeVerdicts fills verdicts from the one row of decide_v1's result: stale
// and now; of each claim its status, whether it is allowed and the instant; of
// each part what [partColumns] has.
//
// All parts stand in one slice, whose capacity the first verdict keeps for the
// next call.
func decodeVerdicts(row [][]byte, claims []policy.Claim, verdicts *policy.Verdicts) error {
	const ofCall, ofClaim = 2, 3
	if len(row) != ofCall+ofClaim+partColumnCount || len(row[0]) != 1 {
		return errResult
	}
	kept := keptParts(verdicts)
	verdicts.Stale = row[0][0] != 0
	verdicts.Verdicts = verdicts.Verdicts[:0]
	if verdicts.Stale {
		return nil
	}
	if len(row[1]) != 8 {
		return errResult
	}
	verdicts.NowMicros = int64(binary.BigEndian.Uint64(row[1])) //nolint:gosec // two's complement is the wire form
	var columns [ofClaim]column
	for i, size := range [...]int{4, 1, 8} {
		var err error
		if columns[i], err = readColumn(row[ofCall+i], size); err != nil {
			return err
		}
		if columns[i].length != len(claims) {
			return errResult
		}
	}
	parts, claimOf, err := decodeParts(row[ofCall+ofClaim:], kept)
	if err != nil {
		return err
	}
	end := 0
	for i := range claims {
		begin := end
		for end < len(parts) && int(claimOf.int4(end)) == i+1 { // PostgreSQL counts from 1
			end++
		}
		limit := end
		if i == 0 {
			limit = cap(parts)
		}
		verdict := policy.Verdict{Allowed: columns[1].bool(i), AtMicros: columns[2].int8(i), Parts: parts[begin:end:limit]}
		status := columns[0].int4(i)
		if verdict.Status = policy.ClaimStatus(status); int32(verdict.Status) != status || !answers(&verdict, &claims[i]) { //nolint:gosec // compared
			return errResult
		}
		verdicts.Verdicts = append(verdicts.Verdicts, verdict)
	}
	if end < len(parts) {
		return errResult // parts of nobody, or out of their order
	}
	return nil
}

// keptParts is what an earlier call's parts stood in, to be used again.
func keptParts(verdicts *policy.Verdicts) []policy.Part {
	if cap(verdicts.Verdicts) == 0 {
		return nil
	}
	return verdicts.Verdicts[:1][0].Parts[:0]
}

// answers says whether a verdict can be one of a claim.
func answers(verdict *policy.Verdict, claim *policy.Claim) bool {
	switch verdict.Status {
	case policy.ClaimDecided:
		if len(verdict.Parts) != len(claim.Checks) {
			return false
		}
		for i := range verdict.Parts {
			if verdict.Parts[i].Policy != claim.Checks[i].Policy.Number {
				return false
			}
		}
		return true
	case policy.ClaimReplayed:
		return len(verdict.Parts) > 0 && claim.Operation != policy.Key{}
	default:
		return len(verdict.Parts) == 0 && verdict.Status <= policy.ClaimUnknown
	}
}

// partColumnCount is how many columns the parts have: their claims, policies,
// versions, whether they are allowed, remaining, retry after, reset after,
// costs, slots and the slots' expiry.
const partColumnCount = 10

// decodeParts reads the columns of the parts into a slice that is used again.
// claimOf has the claim of each part.
func decodeParts(row [][]byte, kept []policy.Part) (parts []policy.Part, claimOf column, err error) {
	var columns [8]column
	for i, size := range [...]int{4, 4, 4, 1, 8, 8, 8, 8} {
		if columns[i], err = readColumn(row[i], size); err != nil {
			return nil, column{}, err
		}
	}
	slots, err := readOptional(row[8], len(policy.SlotID{}))
	if err != nil {
		return nil, column{}, err
	}
	expiries, err := readOptional(row[9], 8)
	if err != nil {
		return nil, column{}, err
	}
	length := columns[0].length
	for i := range columns {
		if columns[i].length != length {
			return nil, column{}, errResult
		}
	}
	if slots.length != length || expiries.length != length {
		return nil, column{}, errResult
	}
	parts = kept[:0]
	for i := range length {
		part := policy.Part{
			Policy: columns[1].int4(i), Version: int(columns[2].int4(i)), Allowed: columns[3].bool(i),
			Remaining: columns[4].int8(i), RetryAfterMicros: columns[5].int8(i), ResetAfterMicros: columns[6].int8(i),
			Cost: columns[7].int8(i),
		}
		slot, expiry := slots.next(), expiries.next()
		if (slot == nil) != (expiry == nil) {
			return nil, column{}, errResult
		}
		if slot != nil {
			part.Slot = policy.Slot{ID: policy.SlotID(slot), ExpiresAtMicros: int64(binary.BigEndian.Uint64(expiry))} //nolint:gosec // two's complement is the wire form
		}
		parts = append(parts, part)
	}
	return parts, columns[0], nil
}
