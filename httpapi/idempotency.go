package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/rationhq/ration/policy"
)

const idempotencyKeyHeader = "Idempotency-Key"

// addIdempotencyKey gives a request the operation id of its Idempotency-Key
// header, if it has one. Where the body has one too, both must be the same.
func addIdempotencyKey(r *http.Request, request *policy.Request) error {
	values := r.Header[idempotencyKeyHeader]
	if len(values) == 0 {
		return nil
	}
	if len(values) > 1 {
		return badRequest("Idempotency-Key is given more than once.")
	}
	id, ok := parseIdempotencyKey(values[0])
	switch {
	case !ok:
		return badRequest(fmt.Sprintf(`Idempotency-Key must be 1 to %d characters, as a structured field's string ("op-1") or bare.`, policy.TextBytesMax))
	case request.Peek:
		return badRequest("A peek takes nothing and is not remembered: leave Idempotency-Key out.")
	case request.OperationID != "" && request.OperationID != id:
		return badRequest("Idempotency-Key and operationId are different operation ids; give one of them.")
	}
	request.OperationID = id
	return nil
}

// parseIdempotencyKey reads the String (RFC 9651, section 3.3.3) that
// draft-ietf-httpapi-idempotency-key-header asks for, or what most clients
// send: the id itself, of visible ASCII without what would mean something else
// in a structured field.
func parseIdempotencyKey(value string) (id string, ok bool) {
	id = value
	if strings.HasPrefix(value, `"`) {
		id, ok = parseStructuredString(value)
	} else {
		ok = !strings.ContainsFunc(value, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == ',' || c == ';' })
	}
	return id, ok && 0 < len(id) && len(id) <= policy.TextBytesMax
}
