package policy

// ParseEmpty reads the body of a call that has nothing to say: no bytes, or
// an object without members. The error is an [*Error] of reason
// invalid-request with every fault.
func ParseEmpty(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	var r reader
	if object, ok := r.document(body); ok {
		readObject(&r, object, new(struct{}), nil)
	}
	return r.err(ReasonInvalidRequest)
}
