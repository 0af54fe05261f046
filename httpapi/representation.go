package httpapi

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/rationhq/ration/policy"
)

// instantLayout is RFC 3339 in UTC with microseconds, the store's own
// precision: an installation is an exact instant.
const instantLayout = "2006-01-02T15:04:05.000000Z"

// appendRecord appends the JSON of a policy version: what it is, then the
// stored members as they are, then the warnings of the change that made it,
// which are not kept.
func appendRecord(dst []byte, record *policy.Record, warnings []policy.Fault) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, record.ID)
	dst = append(dst, `,"version":`...)
	dst = strconv.AppendInt(dst, int64(record.Version), 10)
	dst = append(dst, `,"installedAt":"`...)
	dst = time.UnixMicro(record.InstalledAtMicros).UTC().AppendFormat(dst, instantLayout)
	dst = append(dst, '"')
	if stored := record.Spec.JSON(); len(stored) > len("{}") {
		dst = append(dst, ',')
		dst = append(dst, stored[1:len(stored)-1]...)
	}
	if len(warnings) > 0 {
		shown := make([]faultMember, len(warnings))
		for i, warning := range warnings {
			shown[i] = faultMember{Pointer: fragment(warning.Pointer), Detail: warning.Detail}
		}
		encoded, _ := json.Marshal(shown) //nolint:errchkjson // text always encodes
		dst = append(dst, `,"warnings":`...)
		dst = append(dst, encoded...)
	}
	return append(dst, '}')
}

// appendRecords appends a page: one member that holds the records.
func appendRecords(dst []byte, member string, records []policy.Record) []byte {
	dst = append(dst, '{')
	dst = appendString(dst, member)
	dst = append(dst, ":["...)
	for i := range records {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendRecord(dst, &records[i], nil)
	}
	return append(dst, "]}\n"...)
}
