// Package isolation has no code: its tests play the scripts of
// sql/testdata/isolation, in which several sessions meet at the same rows in a
// stated order, and compare what each was answered with a golden file.
//
// A script, after the manner of PostgreSQL's own isolation tester:
//
//	# What it shows.
//	setup: SELECT policy(10);
//
//	session one            the service's role, or: session one as owner
//	begin: BEGIN;
//	take1: SELECT take('a');
//
//	order: begin take1 take2 commit
//
// Every order is played on emptied tables. A step that waits for another
// session's lock is printed as waiting and again when it has ended. The words
// of the scripts (policy, take, …) are functions of words.sql.
package isolation
