// Package doctest has no code: its tests run the examples of the
// documentation, so that none of them can be wrong for long.
package doctest
