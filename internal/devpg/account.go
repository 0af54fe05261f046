//go:build unix

package devpg

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is who the server runs as. PostgreSQL refuses root, so root's server
// runs as `postgres`, or as `nobody` where there is no such user; everybody
// else's runs as themselves (the zero account).
type account struct {
	name     string
	uid, gid uint32
}

func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(found.Uid, 10, 32)
		if err != nil {
			return account{}, fmt.Errorf("read the user id of %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(found.Gid, 10, 32)
		if err != nil {
			return account{}, fmt.Errorf("read the group id of %s: %w", name, err)
		}
		return account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return account{}, errors.New("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody: run as another user")
}

func (a account) ourselves() bool { return a.name == "" }

// become makes the command run as the account.
func (a account) become(command *exec.Cmd) {
	if a.ourselves() {
		return
	}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
	// Its home is root's otherwise, where libraries look for their settings.
	command.Env = append(os.Environ(), "HOME=/", "USER="+a.name)
}

// own gives a folder to the account.
func (a account) own(dir string) error {
	if a.ourselves() {
		return nil
	}
	if err := os.Chown(dir, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("give %s to user %s: %w", dir, a.name, err)
	}
	return nil
}

// canReach checks that the account may pass through every folder down to dir.
// Access control lists are not looked at: what they add, PostgreSQL finds out.
func (a account) canReach(dir string) error {
	if a.ourselves() {
		return nil
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("follow %s: %w", dir, err)
	}
	for at := resolved; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return fmt.Errorf("look at %s: %w", at, err)
		}
		if !a.mayEnter(info) {
			return fmt.Errorf("%s cannot be reached by user %s, as whom PostgreSQL has to run because it refuses root: choose a folder outside %s, such as /var/lib/ration-dev, or `chmod o+x %[3]s`", dir, a.name, at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

func (a account) mayEnter(info os.FileInfo) bool {
	const ownerEnter, groupEnter, othersEnter = 0o100, 0o010, 0o001
	owner, known := info.Sys().(*syscall.Stat_t)
	switch {
	case !known:
		return true
	case owner.Uid == a.uid:
		return info.Mode()&ownerEnter != 0
	case owner.Gid == a.gid:
		return info.Mode()&groupEnter != 0
	default:
		return info.Mode()&othersEnter != 0
	}
}
