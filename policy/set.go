package policy

// Set is an immutable, compiled set of policies of one generation.
type Set struct{ generation int64 }

// Compile builds a set of the policies of one generation.
func Compile(generation int64, policies []*Installed) *Set { return &Set{generation: generation} }

// Generation is the number of the store's whole policy set.
func (s *Set) Generation() int64 { return s.generation }

// Policies gives all policies, ascending by id.
func (s *Set) Policies() []*Installed { return nil }

// Lookup finds a policy by its id.
func (s *Set) Lookup(id string) (*Installed, bool) { return nil, false }

// Match finds what a request has to pass.
func (s *Set) Match(req *Request, m *Matched) error { return nil }

// Matched is what a request matched; its buffers are reused.
type Matched struct {
	Checks   []Check    // enforced policies, ascending by id
	Disabled *Installed // the first matching policy that is disabled, nil when none is
	Skipped  []Skipped     // policies that do not apply for want of an attribute
}

// Skipped is a matching policy that does not apply because the request lacks an
// attribute of its key.
type Skipped struct {
	Policy    *Installed
	Attribute Attribute // the first that is missing
}

// Reset empties m and keeps its buffers.
func (m *Matched) Reset() { m.Checks, m.Disabled, m.Skipped = m.Checks[:0], nil, m.Skipped[:0] }
