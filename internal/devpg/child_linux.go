package devpg

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel stop the child when we die without stopping it
// ourselves. SIGINT is PostgreSQL's fast shutdown: even then nothing is lost.
func dieWithParent(command *exec.Cmd) {
	attributes := ownGroup(command)
	attributes.Pdeathsig = syscall.SIGINT
}
