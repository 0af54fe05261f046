// Package tidy has no code: its tests hold the rules of the house that no
// linter knows. They need no database and read every file of the module.
package tidy
