package policy

import "strings"

// Code says what kind of failure an [Error] is. A denied request is a
// [Decision], never an error.
type Code uint8

// The codes, one set for the whole module. Each boundary maps them once:
// httpapi onto statuses, the command line onto exit codes.
const (
	CodeInternal        Code = iota // a fault of ours
	CodeInvalid                     // the caller's input is wrong
	CodeNotFound                    // what was named does not exist
	CodeConflict                    // the state is not the one the caller asked for
	CodeUnavailable                 // the store gave no answer
	CodeOverloaded                  // a bound of ours is reached
	CodeUnauthenticated             // the caller does not say who it is, or says so in vain
	CodeForbidden                   // the caller is known and may not do this
)

// Reason names one kind of problem; it is the last segment of the problem
// type's URI and never changes its meaning.
type Reason string

// The reasons that the domain itself gives.
const (
	ReasonInvalidRequest      Reason = "invalid-request"       // CodeInvalid: malformed or impossible request
	ReasonPolicyInvalid       Reason = "policy-invalid"        // CodeInvalid: well-formed but impossible policy
	ReasonCostNotAllowed      Reason = "cost-not-allowed"      // CodeInvalid: no matching policy would charge the stated cost
	ReasonTooManyPolicies     Reason = "too-many-policies"     // CodeInvalid: more policies match than one call takes
	ReasonTooManyOverrides    Reason = "too-many-overrides"    // CodeInvalid: a policy, or all of them, have as many as there may be
	ReasonNoPolicy            Reason = "no-policy"             // CodeNotFound: no policy matches the request
	ReasonNotFound            Reason = "not-found"             // CodeNotFound: the named thing does not exist
	ReasonVersionConflict     Reason = "version-conflict"      // CodeConflict: a policy's version is not the stated one
	ReasonPolicyBehind        Reason = "policy-behind"         // CodeConflict: the required policy version is not in force yet
	ReasonPolicyUnnamed       Reason = "policy-unnamed"        // CodeInvalid: a version is required of one of several policies, and which is not said
	ReasonOperationReused     Reason = "operation-id-reused"   // CodeInvalid: the operation id belongs to another request
	ReasonOperationInProgress Reason = "operation-in-progress" // CodeConflict: the same operation is being decided; ask again in a second
	ReasonSlotsHeld           Reason = "slots-held"            // CodeConflict: a reset would take live slots from the work that holds them
	ReasonStoreUnavailable    Reason = "store-unavailable"     // CodeUnavailable
	ReasonIssuerUnavailable   Reason = "issuer-unavailable"    // CodeUnavailable: who issues bearer tokens was not found yet
	ReasonOverloaded          Reason = "overloaded"            // CodeOverloaded
	ReasonUnauthenticated     Reason = "unauthenticated"       // CodeUnauthenticated: no credential, or none that holds
	ReasonForbidden           Reason = "forbidden"             // CodeForbidden: the caller's role is not enough
	ReasonGatewayScope        Reason = "gateway-scope"         // CodeForbidden: the gateway may not speak for this
	ReasonInternal            Reason = "internal"              // CodeInternal
)

// Fault is one thing wrong with an input.
type Fault struct {
	Pointer string // JSON Pointer (RFC 6901) of the faulty member, "" for the whole document
	Detail  string // what is wrong with it, as said of the member: "must be …"; it never repeats a secret or internals
}

// Error is a failure with its kind, its reason and, for bad input, every
// fault that was found.
type Error struct {
	Code   Code
	Reason Reason
	Detail string  // sentences for the caller, without internals
	Faults []Fault // every fault of an invalid input, in document order
	Cause  error   // for the log only; never shown to a caller
}

// Error gives reason, detail and faults in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Reason))
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	for _, f := range e.Faults {
		b.WriteString("; " + f.Pointer + " " + f.Detail)
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Invalid is an [Error] of code CodeInvalid that carries every fault found.
func Invalid(reason Reason, detail string, faults ...Fault) *Error {
	return &Error{Code: CodeInvalid, Reason: reason, Detail: detail, Faults: faults}
}
