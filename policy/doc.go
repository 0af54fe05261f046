// Package policy is the domain of Ration: what a policy says, what a request
// asks, which policies match it, under which keys and at what cost, and what
// a decision answers.
//
// The package is pure. It knows no clock, no network, no database and no
// logger, and imports no other package of this module; everything else speaks
// in its types. Balances are refilled, compared and consumed by the stored
// functions (sql/functions), never here.
//
// Units, everywhere in the module: times and durations are microseconds of
// the database clock (names end in Micros), costs, limits and remaining
// figures are whole tokens, balances are units of 1/d token (see [Rate]).
package policy
