package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Rebase is an operator's word that what is ahead of the clock be set to now.
type Rebase struct {
	Author

	From   RebasePlace // the zero place begins
	Reason string      // for the audit, at most 1,000 bytes
}

// RebasePlace is how far a rebase has come.
type RebasePlace struct {
	Table int // 0: the policies; 1 to [RebaseTableLast]: their state, in the store's own order
	After Key
}

// String writes the place as [ParseRebase] reads it.
func (p RebasePlace) String() string { return strconv.Itoa(p.Table) + "-" + p.After.Hex() }

// RebaseTableLast is the last table of a rebase.
const RebaseTableLast = 7

// parseRebasePlace reads what [RebasePlace.String] writes.
func parseRebasePlace(text string) (place RebasePlace, err error) {
	table, after, _ := strings.Cut(text, "-")
	place.Table, err = strconv.Atoi(table)
	if err != nil || place.Table < 0 || place.Table > RebaseTableLast {
		return RebasePlace{}, fmt.Errorf("%q is no place of a rebase", text)
	}
	place.After, err = ParseKey(after)
	return place, err
}

var rebaseMembers = members[Rebase]{
	{name: "after", read: func(r *reader, b *Rebase, v jsontext.Value) {
		place, err := parseRebasePlace(r.text(v, 1, TextBytesMax))
		if err != nil {
			r.fault("must be the next of an answer")
		}
		b.From = place
	}},
	{name: "reason", required: true, read: func(r *reader, b *Rebase, v jsontext.Value) { b.Reason = r.text(v, 1, proseBytesMax) }},
}

// ParseRebase reads the body of a rebase. The error is an [*Error] of reason
// invalid-request with every fault.
func ParseRebase(body []byte) (*Rebase, error) {
	var r reader
	rebase := new(Rebase)
	if object, ok := r.document(body); ok {
		readObject(&r, object, rebase, rebaseMembers)
	}
	if err := r.err(ReasonInvalidRequest); err != nil {
		return nil, err
	}
	return rebase, nil
}
