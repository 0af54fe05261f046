package httpapi

import (
	"net/http"

	"github.com/rationhq/ration/policy"
)

// getUsage answers what one caller has left under every policy that he may
// read, and takes nothing.
func (d *decisions) getUsage(w http.ResponseWriter, r *http.Request, gateway *policy.Gateway) (int, error) {
	query, err := parseQuery(r)
	if err != nil {
		return 0, err
	}
	request, err := policy.ParseUsage(query)
	if err != nil {
		return 0, err
	}
	if err := gateway.Check(request); err != nil {
		return 0, err
	}
	usage, err := d.decider.Usage(r.Context(), request)
	if err != nil {
		return 0, err
	}
	return d.writeJSON(w, r, appendUsage(nil, &usage)), nil
}

// appendUsage appends the JSON of a caller's usage.
func appendUsage(dst []byte, usage *policy.Usage) []byte {
	dst = append(dst, `{"policies":[`...)
	for i := range usage.Parts {
		part := &usage.Parts[i]
		if !part.Policy.Spec.ShowsFigures() {
			continue
		}
		dst = append(separate(dst), '{')
		dst = appendPart(dst, part)
		if part.ResetAfterMicros != policy.Never {
			dst = appendResetAt(dst, policy.InstantAfter(usage.AtMicros, part.ResetAfterMicros))
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `],"missing":[`...)
	for _, skipped := range usage.Missing {
		if !skipped.Policy.Spec.ShowsFigures() {
			continue
		}
		dst = append(separate(dst), `{"policy":`...)
		dst = appendString(dst, skipped.Policy.ID)
		dst = append(dst, `,"attribute":`...)
		dst = appendString(dst, skipped.Attribute.RequestMember())
		dst = append(dst, '}')
	}
	return append(dst, "]}\n"...)
}
