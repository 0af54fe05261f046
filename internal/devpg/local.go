//go:build unix

package devpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// cluster is a data folder and who works in it:
//
//	Dir/postgres/lock   held by the process that runs the server
//	Dir/postgres/data   PostgreSQL's own
type cluster struct {
	home   string // Dir/postgres, closed to everybody but the account
	data   string
	as     account
	config Config
}

func startLocal(ctx context.Context, config Config) (*Server, error) {
	found, err := Find(ctx, config.BinDir)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, missing("no PostgreSQL %d or newer on the PATH or where packages put it", MajorMin)
	}
	return startBinaries(ctx, config, found)
}

// startBinaries starts a server with the first of the binaries that fits.
func startBinaries(ctx context.Context, config Config, found []Binaries) (_ *Server, err error) {
	as, err := serverAccount()
	if err != nil {
		return nil, err
	}
	home := filepath.Join(config.Dir, "postgres")
	c := &cluster{home: home, data: DataDir(config.Dir), as: as, config: config}
	if err := c.makeHome(); err != nil {
		return nil, err
	}
	unlock, err := lockFile(filepath.Join(home, "lock"), config.Dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	major, err := dataMajor(c.data)
	if err != nil {
		return nil, err
	}
	binaries, err := choose(found, major)
	if err != nil {
		return nil, err
	}
	if err := as.canReach(binaries.Dir); err != nil {
		return nil, fmt.Errorf("PostgreSQL's programs: %w", err)
	}
	if err := c.awaitPredecessor(ctx); err != nil {
		return nil, err
	}
	if major == 0 {
		if err := c.initialise(ctx, binaries); err != nil {
			return nil, err
		}
	}
	return c.run(ctx, binaries, unlock)
}

// makeHome makes the folder that only the server's account can open.
func (c *cluster) makeHome() error {
	// Others may pass through the folder that we were given: root's server
	// does not run as root.
	if err := os.MkdirAll(c.config.Dir, 0o755); err != nil { //nolint:gosec // the folder inside is the private one
		return fmt.Errorf("make the data's folder: %w", err)
	}
	if err := c.as.canReach(c.config.Dir); err != nil {
		return fmt.Errorf("the data's folder: %w", err)
	}
	if err := os.Mkdir(c.home, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make the data's folder: %w", err)
	}
	return c.as.own(c.home)
}

// initialise makes the data folder under another name and renames it when it
// is complete, so that one that was interrupted is never taken for a cluster.
func (c *cluster) initialise(ctx context.Context, binaries Binaries) error {
	unfinished := c.data + ".new"
	var output []byte
	var err error
	// Keys compare by byte, so the locale decides only what upper() and psql
	// do. Not every system has C.UTF-8; every one has C.
	for _, locale := range []string{"C.UTF-8", "C"} {
		if err := os.RemoveAll(unfinished); err != nil {
			return fmt.Errorf("remove an unfinished data folder: %w", err)
		}
		arguments := []string{
			"-D", unfinished, "--username", Superuser, "--encoding", "UTF8", "--locale", locale,
			// The socket stands in a folder that is closed to others; TCP, when
			// asked for, wants a password.
			"--auth-local", "trust", "--auth-host", "scram-sha-256",
		}
		if c.config.Unsafe {
			arguments = append(arguments, "--no-sync")
		}
		command := exec.CommandContext(ctx, filepath.Join(binaries.Dir, "initdb"), arguments...)
		command.Dir = c.home // the caller's folder may be closed to the account
		c.as.become(command)
		if output, err = command.CombinedOutput(); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("initdb: %w:\n%s", err, output)
	}
	if err := os.Rename(unfinished, c.data); err != nil {
		return fmt.Errorf("put the data folder in place: %w", err)
	}
	return nil
}

// run starts postgres itself, not pg_ctl: it is our child then, and its end
// is seen.
func (c *cluster) run(ctx context.Context, binaries Binaries, unlock func()) (_ *Server, err error) {
	sockets, remove, err := socketDir(c.home, c.as)
	if err != nil {
		return nil, err
	}
	s := &Server{From: binaries.Dir, host: sockets, port: DefaultPort, cleanup: func() {
		remove()
		unlock()
	}}
	listen := ""
	if c.config.Port != 0 {
		s.port, listen = c.config.Port, "127.0.0.1"
	}
	arguments := append([]string{"-D", c.data}, settings(c.config)...)
	arguments = append(arguments,
		"-c", "listen_addresses="+listen,
		"-c", "port="+strconv.Itoa(s.port),
		"-c", "unix_socket_directories="+sockets)
	command := exec.Command(filepath.Join(binaries.Dir, "postgres"), arguments...) //nolint:noctx // it is stopped by signal, in order
	command.Dir = c.home
	c.as.become(command)
	if s.child, err = startChild(command, c.config.Log); err != nil {
		remove()
		return nil, err
	}
	if err := s.awaitReady(ctx); err != nil {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), killWait)
		defer cancel()
		return nil, errors.Join(err, s.Stop(stopping))
	}
	return s, nil
}

// lockFile claims the folder for this process and gives the way to let go.
func lockFile(path, dir string) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("claim the data's folder: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = &InUseError{Dir: dir}
	}
	if err != nil {
		_ = file.Close() // nothing was written
		return nil, err
	}
	return func() { _ = file.Close() }, nil // closing unlocks
}
