package policy

// StoreFault says how a call of the store ended without an answer.
type StoreFault uint8

// The faults of a store's call, from the most to the least certain about what
// was charged: nothing, but for StoreUnsure.
const (
	StoreUnreachable StoreFault = iota // no connection, refused, read-only or recovering
	StoreHeld                          // the call ran into its bound, as behind a row that others hold
	StoreStateLost                     // the fast state was lost in a crash and is not recovered yet
	StoreFaulty                        // the store refused the call's data, or a function is at fault
	StoreUnsure                        // the connection broke, or no answer came in time: it may have charged
)

// storeFaultNames are the classes of ration_store_errors_total.
var storeFaultNames = [...]string{"unreachable", "held", "state_lost", "faulty", "unsure"}

// String gives the fault's name in metrics.
func (f StoreFault) String() string { return storeFaultNames[f] }

// StoreFaults gives every fault, so that a metric can begin with all of them.
func StoreFaults() []StoreFault {
	return []StoreFault{StoreUnreachable, StoreHeld, StoreStateLost, StoreFaulty, StoreUnsure}
}

// StoreError is a call of the store that ended without an answer.
type StoreError struct {
	Fault StoreFault
	Doing string // what was being done, for the log
	Cause error
}

// Error gives what was being done, the fault and the cause.
func (e *StoreError) Error() string {
	return e.Doing + ": " + e.Fault.String() + ": " + e.Cause.Error()
}

// Unwrap gives the cause.
func (e *StoreError) Unwrap() error { return e.Cause }

// Problem is the same failure as an [*Error] for whoever asked.
func (e *StoreError) Problem() *Error {
	if e.Fault == StoreFaulty {
		return &Error{Code: CodeInternal, Reason: ReasonInternal, Cause: e}
	}
	return &Error{Code: CodeUnavailable, Reason: ReasonStoreUnavailable, Detail: storeFaultDetails[e.Fault], Cause: e}
}

// storeFaultDetails says to a caller what came of his call: of a decision or of
// a policy's change.
var storeFaultDetails = [...]string{
	StoreUnreachable: "The store is not reachable; nothing was done.",
	StoreHeld:        "The store did not get to it within its bound; nothing was done.",
	StoreStateLost:   "The store is recovering from a crash; nothing was done.",
	StoreUnsure:      "The store gave no answer in time; whether it took effect is not known.",
}
