package policy

// Parsed is one item of a batch: a request, or why it is none.
type Parsed struct {
	Request *Request
	Err     error
}

// ParseRequest reads one decision request.
func ParseRequest(body []byte) (*Request, error) { return nil, nil }

// ParseBatch reads `{"decisions":[...]}`.
func ParseBatch(body []byte, itemsMax int) ([]Parsed, error) { return nil, nil }
