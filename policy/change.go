package policy

// ParseChange reads the body of a policy PUT.
func ParseChange(body []byte) (*Change, error) { return nil, nil }

// ParseSpec reads a stored form ([Spec.JSON]) back.
func ParseSpec(stored []byte) (*Spec, error) { return nil, nil }

// ValidID says whether id can name a policy.
func ValidID(id string) error { return nil }

// JSON gives the canonical stored form.
func (s *Spec) JSON() []byte { return nil }

// Equal says whether two specs have the same stored form.
func (s *Spec) Equal(other *Spec) bool { return string(s.JSON()) == string(other.JSON()) }

// Charge gives the cost of one request.
func (s *Spec) Charge(operation string, stated int64) (cost int64, ok bool) { return 0, false }
