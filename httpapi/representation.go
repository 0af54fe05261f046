package httpapi

import (
	"strconv"
	"time"

	"github.com/rationhq/ration/policy"
)

// instantLayout is RFC 3339 in UTC with microseconds, the store's own
// precision: an installation is an exact instant.
const instantLayout = "2006-01-02T15:04:05.000000Z"

// appendRecord appends the JSON of a policy version: what it is, then the
// stored members as they are, then what the operator should know.
func appendRecord(dst []byte, record *policy.Record) []byte {
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
	if record.Spec.OnStoreDown.Mode == policy.Open && !record.Spec.OnStoreDown.AcceptOpen {
		dst = append(dst, `,"warnings":[{"pointer":"#/onStoreDown","detail":"While the store is down this policy allows what it cannot count; say acceptOpen: true to confirm."}]`...)
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
		dst = appendRecord(dst, &records[i])
	}
	return append(dst, "]}\n"...)
}
