package httpapi

import (
	"net/http"

	"github.com/rationhq/ration/policy"
)

// The reasons that HTTP itself gives, beside those of package policy.
const (
	reasonMethodNotAllowed     policy.Reason = "method-not-allowed"
	reasonUnsupportedMediaType policy.Reason = "unsupported-media-type"
	reasonContentTooLarge      policy.Reason = "content-too-large"
	reasonPreconditionRequired policy.Reason = "precondition-required"
	reasonTooManyChanges       policy.Reason = "too-many-changes" // CodeOverloaded: by one operator
)

// The reasons of settlements that change nothing.
const (
	reasonSettlementConflict policy.Reason = "settlement-conflict" // CodeConflict: settled before, by another cost
	reasonSettlementOfSlots  policy.Reason = "settlement-of-slots" // CodeConflict: slots alone were taken, and they are released
)

// reasonInfo gives the status and the stable title of a reason; a reason it
// does not know is shown by its code alone.
func reasonInfo(reason policy.Reason, code policy.Code) (status int, title string) {
	switch reason {
	case policy.ReasonInvalidRequest:
		return http.StatusBadRequest, "Invalid request"
	case policy.ReasonPolicyInvalid:
		return http.StatusUnprocessableEntity, "Invalid policy"
	case policy.ReasonCostNotAllowed:
		return http.StatusUnprocessableEntity, "Cost not allowed"
	case policy.ReasonNoPolicy:
		return http.StatusNotFound, "No policy matches"
	case policy.ReasonTooManyPolicies:
		return http.StatusUnprocessableEntity, "Too many policies match"
	case policy.ReasonTooManyOverrides:
		return http.StatusUnprocessableEntity, "Too many overrides"
	case policy.ReasonPolicyUnnamed:
		return http.StatusUnprocessableEntity, "Whose version is required is not said"
	case policy.ReasonOperationReused:
		return http.StatusUnprocessableEntity, "The operation id belongs to another request"
	case policy.ReasonOperationInProgress:
		return http.StatusConflict, "The operation is being decided"
	case reasonSettlementConflict:
		return http.StatusConflict, "Settled by another cost"
	case reasonSettlementOfSlots:
		return http.StatusConflict, "Slots are released, not settled"
	case policy.ReasonNotFound:
		return http.StatusNotFound, "Not found"
	case policy.ReasonVersionConflict:
		return http.StatusPreconditionFailed, "Another version is in force"
	case policy.ReasonPolicyBehind:
		return http.StatusConflict, "The required policy version is not in force"
	case policy.ReasonSlotsHeld:
		return http.StatusConflict, "Live slots are held"
	case policy.ReasonStoreUnavailable:
		return http.StatusServiceUnavailable, "The store gives no answer"
	case policy.ReasonIssuerUnavailable:
		return http.StatusServiceUnavailable, "The issuer gives no answer"
	case policy.ReasonOverloaded:
		return http.StatusServiceUnavailable, "Overloaded"
	case reasonMethodNotAllowed:
		return http.StatusMethodNotAllowed, "Method not allowed"
	case reasonUnsupportedMediaType:
		return http.StatusUnsupportedMediaType, "Unsupported media type"
	case reasonContentTooLarge:
		return http.StatusRequestEntityTooLarge, "Content too large"
	case reasonTooManyChanges:
		return http.StatusTooManyRequests, "Too many changes"
	case reasonPreconditionRequired:
		return http.StatusPreconditionRequired, "A precondition is required"
	case policy.ReasonUnauthenticated:
		return http.StatusUnauthorized, "Who calls is not known"
	case policy.ReasonForbidden:
		return http.StatusForbidden, "Not for this caller"
	case policy.ReasonGatewayScope:
		return http.StatusForbidden, "Outside the gateway's scope"
	case policy.ReasonInternal:
		return http.StatusInternalServerError, "Internal error"
	default:
		return codeInfo(code)
	}
}

// codeInfo gives the status and title of a code.
func codeInfo(code policy.Code) (status int, title string) {
	switch code {
	case policy.CodeInvalid:
		return http.StatusBadRequest, "Invalid request"
	case policy.CodeNotFound:
		return http.StatusNotFound, "Not found"
	case policy.CodeConflict:
		return http.StatusConflict, "Conflict"
	case policy.CodeUnavailable:
		return http.StatusServiceUnavailable, "Unavailable"
	case policy.CodeOverloaded:
		return http.StatusServiceUnavailable, "Overloaded"
	case policy.CodeUnauthenticated:
		return http.StatusUnauthorized, "Who calls is not known"
	case policy.CodeForbidden:
		return http.StatusForbidden, "Not for this caller"
	case policy.CodeInternal:
	}
	return http.StatusInternalServerError, "Internal error"
}
