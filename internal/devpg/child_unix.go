//go:build unix

package devpg

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup keeps a Ctrl-C in our terminal from reaching the child: we stop it
// ourselves, after everything that needs it.
func ownGroup(command *exec.Cmd) *syscall.SysProcAttr {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Setpgid = true
	return command.SysProcAttr
}

// interrupt is PostgreSQL's fast shutdown, quit its immediate one. Both may
// find that the process has ended, which is what they want.
func interrupt(process *os.Process) { _ = process.Signal(syscall.SIGINT) }
func quit(process *os.Process)      { _ = process.Signal(syscall.SIGQUIT) }
