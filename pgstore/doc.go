// Package pgstore is the store in PostgreSQL: it calls the stored functions
// of sql/functions and holds no arithmetic of its own.
//
// A [Store] keeps two small pools: one for policies and upkeep, one for
// outcomes, settlements and slots. Decisions go through [Session]s, each one
// connection for one lane alone, which bind and read the functions' arrays in
// the binary protocol without reflection. What PostgreSQL's errors mean is read
// in one place, errors.go.
package pgstore
