package policy

// Bounds of a request's text members, in bytes of UTF-8.
const (
	TextBytesMax = 256              // every identity, operation, plan, region and operation id
	CostMax      = int64(1)<<62 - 1 // a larger stated cost is refused as huge
)

// Request is one question of a gateway: may this be done now?
// A Request is canonical: [ParseRequest] has checked and normalised it.
type Request struct {
	// Values by attribute; "" means that the request does not have it.
	Values [AttributeCount]string

	Cost                 int64  // stated cost in tokens, 0 when none is stated
	PolicyVersion        int    // the version the gateway believes in, 0 when not stated
	RequirePolicyVersion bool   // answer 409 instead of deciding under another version
	Policy               string // the policy PolicyVersion speaks of, "" when not stated
	OperationID          string // the caller's id of one logical request, "" when none
	Peek                 bool   // answer without charging
	DeadlineMillis       int    // shortens the decision's deadline, 0 when not stated
}
