//go:build unix && !linux

package devpg

import "os/exec"

// dieWithParent can do no more here than keep the terminal's Ctrl-C away.
// A server that outlives a killed parent is found by the next start.
func dieWithParent(command *exec.Cmd) { ownGroup(command) }
