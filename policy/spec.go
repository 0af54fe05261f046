package policy

import (
	"bytes"
	"slices"
)

// Spec is the content of one policy version: which requests it matches, which
// attributes make its key, the limit, the costs and the failure rule.
// [ParseChange] reads, checks and completes it with the defaults; its JSON
// form ([Spec.JSON]) is what the store keeps.
type Spec struct {
	Description string
	Match       Match
	Per         []Attribute // ascending and distinct; empty: one key for all
	IPPrefix    IPPrefix    // how an address is cut when Per has IP
	OnMissing   OnMissing
	Limit       Limit
	Costs       Costs
	OnStoreDown StoreDown
	AfterLoss   AfterLoss // fast policies only
	Durability  Durability
	Mode        Mode
	Scope       Scope
	Disclose    bool // show figures of a key that holds none of the caller's own identities
}

// keyedBy says whether an attribute is part of the key.
func (s *Spec) keyedBy(attribute Attribute) bool { return slices.Contains(s.Per, attribute) }

// ShowsFigures says whether a caller may read the policy's figures. A key that
// holds none of the caller's own identities counts other people's calls too,
// and nobody reads another's usage, unless the policy discloses it.
func (s *Spec) ShowsFigures() bool {
	return s.Disclose || slices.ContainsFunc(s.Per, func(attribute Attribute) bool {
		return attribute <= IP // the identities but for the account that a sign-in aims at
	})
}

// JSON gives the canonical stored form: members in a fixed order, defaults
// echoed, numbers exactly as they were written, none of the change's members.
// [ParseSpec] reads it back.
func (s *Spec) JSON() []byte {
	var w writer
	w.open("", '{')
	if s.Description != "" {
		w.text("description", s.Description)
	}
	w.match(&s.Match)
	w.open("per", '[')
	for _, attribute := range s.Per {
		w.element(attribute.String())
	}
	w.close(']')
	if s.keyedBy(IP) {
		w.ipPrefix(s.IPPrefix)
	}
	w.text("onMissing", s.OnMissing.String())
	w.literal("limit", string(s.Limit.JSON()))
	w.costs(&s.Costs)
	w.storeDown(&s.OnStoreDown)
	w.text("durability", s.Durability.String())
	if s.Durability == Fast {
		w.text("afterLoss", s.AfterLoss.String())
	}
	w.text("mode", s.Mode.String())
	w.text("scope", s.Scope.String())
	if s.Disclose {
		w.literal("disclose", "true")
	}
	w.close('}')
	return w.out
}

// Equal says whether two specs have the same stored form: installing the one
// over the other would change nothing.
func (s *Spec) Equal(other *Spec) bool { return bytes.Equal(s.JSON(), other.JSON()) }
