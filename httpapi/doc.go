// Package httpapi serves Ration over HTTP: decisions to gateways, policies to
// operators, health and metrics to machines. One constructor makes the
// handler of each listener: [NewDecisions], [NewAdmin], [NewObservability].
//
// The package translates and nothing more. Requests are read by package
// policy and answered by a [Decider], by [Operations] or by [Policies], which
// others implement; errors become RFC 9457 problems in one place (problem.go).
// A denial is a decision and never a problem.
package httpapi
