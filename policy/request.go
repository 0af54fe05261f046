package policy

import (
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a request's members.
const (
	TextBytesMax = 256              // in UTF-8: every identity, operation, plan, region and operation id
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
	Peek                 bool   // answer without charging; such a request has no operation id
	DeadlineMillis       int    // shortens the decision's deadline, 0 when not stated

	Gateway string // whose request it is; not among the members: the listener knows it ("" where it does not)
}

// identityMembersSeen are the bits of the members that identify a caller.
const identityMembersSeen seen = 1<<len(identities) - 1

// requestMembers is the wire form of a request. The attributes come first and
// in their order, so the identities before all else.
var requestMembers = members[Request]{
	{name: "verifiedAccount", read: readValue(Account)},
	{name: "user", read: readValue(User)},
	{name: "apiKey", read: readValue(APIKey)},
	{name: "oauthToken", read: readValue(OAuthToken)},
	{name: "ip", read: func(r *reader, q *Request, v jsontext.Value) { q.Values[IP] = r.address(v) }},
	{name: "targetAccount", read: func(r *reader, q *Request, v jsontext.Value) { q.Values[TargetAccount] = r.targetAccount(v) }},
	{name: "plan", read: readValue(Plan)},
	{name: "region", read: readValue(Region)},
	{name: "operation", required: true, read: func(r *reader, q *Request, v jsontext.Value) { q.Values[Operation] = r.operation(v) }},
	{name: "cost", read: func(r *reader, q *Request, v jsontext.Value) { q.Cost = r.positive(v, CostMax) }},
	{name: "policyVersion", read: func(r *reader, q *Request, v jsontext.Value) { q.PolicyVersion = int(r.positive(v, math.MaxInt32)) }},
	{name: "policy", read: func(r *reader, q *Request, v jsontext.Value) { q.Policy = r.policyID(v) }},
	{name: "requirePolicyVersion", read: func(r *reader, q *Request, v jsontext.Value) { q.RequirePolicyVersion = r.boolean(v) }},
	{name: "operationId", read: func(r *reader, q *Request, v jsontext.Value) { q.OperationID = r.text(v, 1, TextBytesMax) }},
	{name: "peek", read: func(r *reader, q *Request, v jsontext.Value) { q.Peek = r.boolean(v) }},
	{name: "deadlineMillis", read: func(r *reader, q *Request, v jsontext.Value) { q.DeadlineMillis = int(r.positive(v, math.MaxInt32)) }},
}

// readValue reads an attribute that is kept byte for byte: what two spellings
// of it mean is the gateway's duty.
func readValue(attribute Attribute) func(*reader, *Request, jsontext.Value) {
	return func(r *reader, q *Request, v jsontext.Value) {
		q.Values[attribute] = r.text(v, 1, TextBytesMax)
	}
}

// ParseRequest reads the body of one decision request. It keeps no part of
// body. The error is an [*Error] of reason invalid-request with every fault.
func ParseRequest(body []byte) (*Request, error) {
	var r reader
	object, ok := r.document(body)
	if !ok {
		return nil, r.err(ReasonInvalidRequest)
	}
	request := new(Request)
	if err := r.request(object, request); err != nil {
		return nil, err
	}
	return request, nil
}

// checkIdentified checks that a caller is named.
func (r *reader) checkIdentified(found seen) {
	if found&identityMembersSeen == 0 {
		r.faultForm("needs at least one of verifiedAccount, user, apiKey, oauthToken, ip and targetAccount")
	}
}

// request reads a request from a valid JSON value.
func (r *reader) request(value jsontext.Value, request *Request) error {
	found := readObject(r, value, request, requestMembers)
	if value.Kind() == jsontext.KindBeginObject {
		r.checkIdentified(found)
	}
	if request.RequirePolicyVersion && !requestMembers.has(found, "policyVersion") {
		r.faultAt("requirePolicyVersion", "needs policyVersion")
	}
	if request.Peek && request.OperationID != "" {
		r.faultAt("operationId", "has no meaning for a peek, which decides nothing")
	}
	return r.err(ReasonInvalidRequest)
}
