package httpapi

import (
	"encoding/json"
	"strconv"

	"github.com/rationhq/ration/policy"
)

// appendVersion appends the JSON of a policy version: what it is, then the
// stored members as they are, then the warnings of the change that made it,
// which are not kept.
func appendVersion(dst []byte, installed *policy.Installed, warnings []policy.Warning) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, installed.ID)
	dst = append(dst, `,"version":`...)
	dst = strconv.AppendInt(dst, int64(installed.Version), 10)
	dst = append(dst, `,"installedAt":`...)
	dst = appendInstant(dst, installed.InstalledAtMicros)
	if installed.Mode != installed.Spec.Mode { // a kill switch lies over it
		dst = append(dst, `,"modeInForce":`...)
		dst = appendString(dst, installed.Mode.String())
	}
	if installed.Deleted {
		dst = append(dst, `,"deleted":true`...)
	}
	if stored := installed.Spec.JSON(); len(stored) > len("{}") {
		dst = append(dst, ',')
		dst = append(dst, stored[1:len(stored)-1]...)
	}
	if len(warnings) > 0 {
		encoded, _ := json.Marshal(warningMembers(warnings)) //nolint:errchkjson // text always encodes
		dst = append(dst, `,"warnings":`...)
		dst = append(dst, encoded...)
	}
	return append(dst, '}')
}

// appendPage appends a page: one member that holds the versions.
func appendPage(dst []byte, member string, page []*policy.Installed) []byte {
	dst = append(dst, '{')
	dst = appendString(dst, member)
	dst = append(dst, ":["...)
	for i := range page {
		dst = appendVersion(separate(dst), page[i], nil)
	}
	return append(dst, "]}\n"...)
}
