package policy

// AuditRow is one row of the audit: what somebody did, or Ration of its own
// accord. Rows are only ever added.
type AuditRow struct {
	ID       int64 // from 1, without gaps since rows are chained
	AtMicros int64
	Actor    string
	Role     string // in which a listener let the actor in; "" of who came by none: Ration itself, the database's owner
	Action   string // as policy.changed

	Policy                      string // "" when it is not about one
	VersionBefore, VersionAfter int    // of that policy; 0: none
	Before, After               []byte // JSON, as stored; nil: none

	Reason, RequestID string

	Settled, Clamped *int64 // balances that a change settled, and cut to the new capacity; nil: no such count

	Previous, Hash []byte // SHA-256 of the row before, none of the first, and of this one
}

// AuditQuery asks for a page of the audit.
type AuditQuery struct {
	Policy, Actor, Action string // only rows with exactly this; "": any

	Oldest bool  // first; else the newest
	After  int64 // rows behind this one, in that order; 0 begins
	Limit  int
}

// AuditFault says how a row of the audit is not as it was written.
type AuditFault string

// What the chain can show.
const (
	AuditWhole    AuditFault = ""         // nothing is wrong
	AuditChanged  AuditFault = "changed"  // the row is not what was written
	AuditMissing  AuditFault = "missing"  // the row, and maybe more behind it, was taken out
	AuditCut      AuditFault = "cut"      // the row and all behind it were taken off the end
	AuditAdded    AuditFault = "added"    // the row was put behind the newest without being chained
	AuditHeadless AuditFault = "headless" // the chain has no head to be compared with
)

// AuditChain is how far the audit's chain was walked, and how it was found.
type AuditChain struct {
	Rows int64  // that are as they were written
	Last int64  // the newest of them
	Hash []byte // of that one

	Fault AuditFault // of the first row that is wrong
	Row   int64      // that row
}
