package policy

import "slices"

// othersMax bounds how many policies that do not match an explanation names:
// all there are may be 100,000.
const othersMax = 100

// Standing is how a request stands to a policy that it matches.
type Standing uint8

// The standings.
const (
	Checked  Standing = iota // it has to pass the policy
	Off                      // the policy is disabled
	Skips                    // it lacks an attribute of the key, and passes the policy by
	Rejects                  // it lacks one, and is refused for it
	Exempted                 // an override exempts its key
	Blocks                   // an override blocks its key
)

// String gives the standing's name in JSON.
func (s Standing) String() string {
	return [...]string{"checked", "disabled", "skipped", "rejected", "exempt", "blocked"}[s]
}

// Explanation says how a request would fare, and why. Nothing is taken by it.
type Explanation struct {
	Matching []Explained // policies that it matches, ascending by id
	Others   []Unmatched // the first of those that it does not, ascending by id
	More     int         // how many of those Others leaves out
	Refusal  error       // why it would not be decided at all, see [Set.Match]; nil: it would
	Allowed  bool        // what it would be answered; false with a Refusal
	AtMicros int64       // the instant of the balances on the store's clock; 0 when none were looked at
}

// Explained is a policy that a request matches.
type Explained struct {
	Policy   *Installed
	Standing Standing
	Missing  Attribute  // of Skips and Rejects: the first attribute of the key that it lacks
	Key      Key        // its bucket, as ration.bucket_key gives it, of another limit that one's; the zero Key where an attribute is missing
	Values   []KeyValue // what the key is made of; nil where an attribute is missing
	Override *Override  // the exception for this key, nil when there is none
	Cost     int64      // what it would be charged, in tokens

	// Part is what the store holds of the key and would answer, of a blocked key
	// that nothing is left; nil where neither is asked.
	Part *DecisionPart
}

// Unmatched is a policy that a request does not match, by the first field of
// its match that says no.
type Unmatched struct {
	Policy    *Installed
	Attribute Attribute
	Value     string // the request's, "" when it has none
}

// Explain says which policies a request matches and which it does not, and
// fills m with what the store is to be asked: nothing where it could not be.
// Of the policies that do not match only the one named by only is told of,
// unless that is "".
func (s *Set) Explain(req *Request, only string, m *Matched) *Explanation {
	explanation := new(Explanation)
	values := s.matchable(&req.Values)
	for i := range s.compiled {
		c := &s.compiled[i]
		if attribute, differs := c.differs(&values); differs {
			explanation.noteOther(Unmatched{Policy: c.Installed, Attribute: attribute, Value: req.Values[attribute]}, only)
			continue
		}
		explanation.Matching = append(explanation.Matching, c.explain(req))
	}
	explanation.Refusal = s.Match(req, m)
	explanation.Allowed = explanation.Refusal == nil && m.Denying() == nil
	if len(m.Checks) > checksMax || CountLogs(m.Checks) > logsMax {
		m.Checks = m.Checks[:0]
	}
	return explanation
}

func (e *Explanation) noteOther(other Unmatched, only string) {
	switch {
	case only != "" && other.Policy.ID != only:
	case len(e.Others) < othersMax:
		e.Others = append(e.Others, other)
	default:
		e.More++
	}
}

// differs gives the first field of a match, in the order in which they are
// written, that says no.
func (c *compiled) differs(values *[AttributeCount]string) (Attribute, bool) {
	for _, attribute := range matchOrder {
		if field := c.field(attribute); field != nil && !field.matches(values[attribute]) {
			return attribute, true
		}
	}
	return 0, false
}

// explain says how a request that matches stands to the policy.
func (c *compiled) explain(req *Request) Explained {
	e := Explained{Policy: c.Installed}
	e.Cost, _ = c.Spec.Charge(req.Values[Operation], req.Cost)
	attribute, lacks := c.Spec.lacks(&req.Values)
	if lacks {
		e.Missing, e.Standing = attribute, Skips
		if c.Spec.OnMissing == Reject {
			e.Standing = Rejects
		}
	} else {
		e.Key, e.Values = KeyOf(c.ID, c.Spec, &req.Values), c.Spec.KeyValues(&req.Values)
	}
	if override, found := c.Overrides[e.Key]; found && !lacks {
		e.Override = &override
		switch override.Action {
		case OverrideExempt:
			e.Standing = Exempted
		case OverrideBlocked:
			e.Standing = Blocks
		case OverrideLimit:
			e.Key = override.Key
		}
	}
	if c.Mode == Disabled {
		e.Standing = Off
	}
	return e
}

// Seen adds what the store holds of the keys that a request would be checked
// against.
func (e *Explanation) Seen(usage *Usage) {
	e.AtMicros = usage.AtMicros
	for i := range usage.Parts {
		part := &usage.Parts[i]
		at := slices.IndexFunc(e.Matching, func(one Explained) bool { return one.Policy.ID == part.Policy.ID })
		if at >= 0 {
			e.Matching[at].Part = part
		}
		e.Allowed = e.Allowed && (part.Allowed || part.Policy.Mode != Enforce)
	}
}
