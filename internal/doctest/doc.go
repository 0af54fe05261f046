// Package doctest reads the examples of the documentation, for tests that run
// them, so that none can be wrong for long. SQL and policies are tested here,
// commands by the program's own tests, in front of a running service.
package doctest
