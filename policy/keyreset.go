package policy

import "github.com/go-json-experiment/json/jsontext"

// KeyReset is an operator's word that one key's state be made full or empty.
type KeyReset struct {
	Author

	PolicyID string
	Values   [AttributeCount]string // of the policy's `per`, see [Spec.CheckKey]
	To       Start                  // StartFull: nothing is spent; StartEmpty: everything
	Release  bool                   // end the live slots of a concurrency key, though the work that holds them goes on
	Reason   string                 // for the audit, at most 1,000 bytes
}

// keyResetMembers is the wire form of a reset: the attributes of a request,
// then what is to be done.
var keyResetMembers = members[KeyReset]{
	{name: "verifiedAccount", read: readKeyValue(Account)},
	{name: "user", read: readKeyValue(User)},
	{name: "apiKey", read: readKeyValue(APIKey)},
	{name: "oauthToken", read: readKeyValue(OAuthToken)},
	{name: "ip", read: readKeyValue(IP)},
	{name: "targetAccount", read: readKeyValue(TargetAccount)},
	{name: "plan", read: readKeyValue(Plan)},
	{name: "region", read: readKeyValue(Region)},
	{name: "operation", read: readKeyValue(Operation)},
	{name: "policy", required: true, read: func(r *reader, k *KeyReset, v jsontext.Value) { k.PolicyID = r.policyID(v) }},
	{name: "to", required: true, read: func(r *reader, k *KeyReset, v jsontext.Value) {
		k.To = StartFull + readRule[Start](r, v, startNames[:])
	}},
	{name: "releaseSlots", read: func(r *reader, k *KeyReset, v jsontext.Value) { k.Release = r.boolean(v) }},
	{name: "reason", required: true, read: func(r *reader, k *KeyReset, v jsontext.Value) { k.Reason = r.text(v, 1, proseBytesMax) }},
}

// readKeyValue reads an attribute as a request has it.
func readKeyValue(attribute Attribute) func(*reader, *KeyReset, jsontext.Value) {
	return func(r *reader, k *KeyReset, v jsontext.Value) {
		var request Request
		requestMembers[attribute].read(r, &request, v)
		k.Values[attribute] = request.Values[attribute]
	}
}

// ParseKeyReset reads the body of a reset. The error is an [*Error] of reason
// invalid-request with every fault.
func ParseKeyReset(body []byte) (*KeyReset, error) {
	var r reader
	reset := new(KeyReset)
	if object, ok := r.document(body); ok {
		readObject(&r, object, reset, keyResetMembers)
	}
	if err := r.err(ReasonInvalidRequest); err != nil {
		return nil, err
	}
	return reset, nil
}
