package policy

import "github.com/go-json-experiment/json/jsontext"

// policyIDBytesMax keeps an id short enough for a metric's label and a URL.
const policyIDBytesMax = 64

const (
	operationDetail = "must match [a-z0-9][a-z0-9._:/-]* in 1 to 256 bytes"
	policyIDDetail  = "must match [A-Za-z0-9][A-Za-z0-9._-]{0,63}"
)

// ValidID checks the id of a policy: [A-Za-z0-9][A-Za-z0-9._-]{0,63}. The
// error is an [*Error] of reason invalid-request.
func ValidID(id string) error {
	if !isPolicyID(id) {
		return Invalid(ReasonInvalidRequest, "A policy's id "+policyIDDetail+".")
	}
	return nil
}

func isPolicyID(id string) bool {
	if len(id) == 0 || len(id) > policyIDBytesMax || !isAlphanumeric(id[0]) {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !isAlphanumeric(c) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// isOperation says whether name can be an operation.
func isOperation(name string) bool {
	return name != "" && len(name) <= TextBytesMax && isOperationPrefix(name)
}

// isOperationPrefix says whether an operation can begin with prefix.
func isOperationPrefix(prefix string) bool {
	for i := range len(prefix) {
		switch c := prefix[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == ':' || c == '/' || c == '-'):
		default:
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// operation reads the name of an operation.
func (r *reader) operation(value jsontext.Value) string {
	if value.Kind() != jsontext.KindString {
		r.faultForm("must be text")
		return ""
	}
	name := string(unquote(value))
	if !isOperation(name) {
		r.fault(operationDetail)
		return ""
	}
	return name
}

// policyID reads the id of a policy.
func (r *reader) policyID(value jsontext.Value) string {
	if value.Kind() != jsontext.KindString {
		r.faultForm("must be text")
		return ""
	}
	id := string(unquote(value))
	if !isPolicyID(id) {
		r.fault(policyIDDetail)
		return ""
	}
	return id
}
