package devpg

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// startDownload fetches PostgreSQL's programs once, into the data's folder,
// and goes on as with local ones.
func startDownload(ctx context.Context, config Config) (*Server, error) {
	programs := filepath.Join(config.Dir, "programs")
	bin := filepath.Join(programs, "bin")
	if _, err := inspect(ctx, bin); err != nil {
		if err := fetch(config, programs); err != nil {
			return nil, missing("fetch PostgreSQL: %v", err)
		}
	}
	found, err := inspect(ctx, bin)
	if err != nil {
		return nil, fmt.Errorf("look at the PostgreSQL that was fetched: %w", err)
	}
	return startBinaries(ctx, config, []Binaries{found})
}

// fetch fills the programs folder. The library has no call that only fetches,
// so it is asked to run a throw-away server; whether that comes up does not
// matter (as root it cannot), the programs are in place before.
func fetch(config Config, programs string) error {
	if err := os.MkdirAll(config.Dir, 0o755); err != nil { //nolint:gosec // root's server runs as somebody else
		return fmt.Errorf("make the data's folder: %w", err)
	}
	scratch, err := os.MkdirTemp("", "ration-fetch-")
	if err != nil {
		return fmt.Errorf("make a folder to fetch into: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // a temporary folder
	port, err := freePort()
	if err != nil {
		return err
	}
	server := embedded.NewDatabase(embedded.DefaultConfig().
		Version(embedded.V18).
		Port(port).
		BinariesPath(programs).
		CachePath(filepath.Join(scratch, "cache")).
		RuntimePath(filepath.Join(scratch, "run")).
		StartTimeout(time.Minute).
		Logger(&tail{}))
	err = server.Start()
	if err == nil {
		err = server.Stop()
	}
	if _, missing := os.Stat(filepath.Join(programs, "bin", "postgres")); missing != nil {
		return err
	}
	return nil
}

func freePort() (uint32, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it binds and lets go
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()                                  //nolint:errcheck // nothing was sent
	return uint32(listener.Addr().(*net.TCPAddr).Port), nil //nolint:forcetypeassert,gosec // of a tcp listener, whose ports fit
}
