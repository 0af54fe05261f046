package devpg

import (
	"os"
	"os/exec"
)

// Windows has no signals to send; only a container's client is a child here,
// and `docker run --rm` ends with it.
func dieWithParent(*exec.Cmd)       {}
func interrupt(process *os.Process) { _ = process.Kill() }
func quit(process *os.Process)      { _ = process.Kill() }
