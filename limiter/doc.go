// Package limiter is the decision core between the front doors and the store.
//
// A request is matched against the policy set in force and becomes a call. A
// call waits in the queue of a lane. Each lane owns one session of the
// store: while the session works, calls gather; when it is free, everything
// that waits goes as one batch, calls of one key and one cost as one counted
// ask. A lone request therefore goes at once, and batches grow only as load
// grows: there is no timer and no added wait.
//
//	Decide ─ match ─▶ call ─▶ lane queue ─ gather ─▶ batch ─▶ Take ─▶ answers
//	                   │                                  └─ again ─▶ TakeNew
//	                   └─▶ claim ─▶ general lane ─ gather ─▶ Decide ─▶ verdicts
//
// What is more than one enforced token bucket is a claim on all that the
// request has to pass, and goes down lanes of its own. What overrides exempt or
// block is answered from the set: the store is not asked.
//
// The package declares what it needs of a store ([Session], [Policies],
// [Reports]) and whom it tells of a set in force ([InForce]); it holds no
// arithmetic of balances.
package limiter
