// Package devpg runs a private PostgreSQL for `ration dev` and for tests: a
// cluster in a folder of its own, tuned for this work, that ends with the
// process that started it.
//
// The server comes from the first source that works: PostgreSQL's binaries on
// this machine, a running Docker engine, a download. With local binaries it
// listens on a unix socket in a private folder and on nothing else.
package devpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Superuser is the role that owns the cluster, and everything in it until
// somebody says otherwise.
const Superuser = "ration_owner"

// MajorMin is the oldest PostgreSQL that Ration supports.
const MajorMin = 15

// readyTimeout bounds the wait for a new server. A cluster that has to
// recover from a crash replays up to max_wal_size first.
const readyTimeout = 2 * time.Minute

// Source says where a server's program came from.
type Source string

// The sources, in the order in which [Start] tries them.
const (
	Local    Source = "local"    // PostgreSQL's binaries on this machine
	Docker   Source = "docker"   // a container of a running Docker engine
	Download Source = "download" // binaries fetched from the network, once
)

// Config says what to start. Only Dir is required.
type Config struct {
	Dir      string            // the folder that keeps the data; made if absent, see [DefaultDir]
	BinDir   string            // PostgreSQL's binaries, "": look for them, see [Find]
	Image    string            // the container's image, "": [DefaultImage]
	Port     int               // also listen on 127.0.0.1 with passwords (scram-sha-256); 0: unix socket only. Docker publishes a random port instead
	Settings map[string]string // server settings on top of this package's own
	Unsafe   bool              // no fsync: faster, and lost when the machine goes down. For tests
	Sources  []Source          // what may be tried, in this order; nil: all
	Log      io.Writer         // the server's own log, line by line; nil: kept only for error messages
}

// DefaultDir is the folder to use where the user named none. Root's is outside
// /root, because PostgreSQL then runs as another user who cannot look in there.
func DefaultDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/ration-dev", nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the data: %w", err)
	}
	return filepath.Join(cache, "ration-dev"), nil
}

// DataDir is PostgreSQL's data folder inside Config.Dir, of a server that is
// not a container's.
func DataDir(dir string) string { return filepath.Join(dir, "postgres", "data") }

// Server is a running PostgreSQL.
type Server struct {
	Source Source
	From   string // the binaries' folder, or the image

	host     string // a folder (unix socket) or an address
	port     int
	password string // of every role, "" where the socket is trusted
	child    *child
	cleanup  func() // removes what must not outlive the server
}

// Start starts a server from the first source that works and returns when it
// answers. A folder that was used before is used again, with its data. A
// folder that another live server uses is an [InUseError]; no other source is
// tried then. When no source works, the error says what each one lacked and
// how to mend it.
func Start(ctx context.Context, config Config) (*Server, error) {
	if config.Dir == "" {
		return nil, errors.New("devpg: Config.Dir is required")
	}
	dir, err := filepath.Abs(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("find folder %s: %w", config.Dir, err)
	}
	config.Dir = dir
	sources := config.Sources
	if sources == nil {
		sources = []Source{Local, Docker, Download}
	}
	var failures []error
	for _, source := range sources {
		start := map[Source]func(context.Context, Config) (*Server, error){
			Local: startLocal, Docker: startDocker, Download: startDownload,
		}[source]
		server, err := start(ctx, config)
		if err == nil {
			server.Source = source
			return server, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", source, err))
		// A source that is missing lets the next one try; one that is there
		// and broken is told, not papered over.
		if missing := (*missingError)(nil); !errors.As(err, &missing) {
			return nil, errors.Join(failures...)
		}
	}
	return nil, fmt.Errorf("no PostgreSQL to start; %s, or point RATION_DATABASE_URL at a server:\n%w", installHint(), errors.Join(failures...))
}

// URL is the address of a database for a role. Roles other than [Superuser]
// may first need [Server.Admit].
func (s *Server) URL(database, role string) string {
	u := url.URL{Scheme: "postgres", User: url.User(role), Path: "/" + database}
	if s.password != "" {
		u.User = url.UserPassword(role, s.password)
	}
	query := url.Values{}
	if strings.HasPrefix(s.host, "/") {
		query.Set("host", s.host)
		query.Set("port", strconv.Itoa(s.port))
	} else {
		u.Host = fmt.Sprintf("%s:%d", s.host, s.port)
		query.Set("sslmode", "disable") // loopback only
	}
	u.RawQuery = encodeQuery(query)
	return u.String()
}

// encodeQuery writes the query of a connection URL. In it libpq, and so psql,
// takes a + for a plus, not for the space of a form.
func encodeQuery(query url.Values) string { return strings.ReplaceAll(query.Encode(), "+", "%20") }

// Done is closed when the server has ended, by [Server.Stop] or by itself.
func (s *Server) Done() <-chan struct{} { return s.child.done }

// Stop ends the server: open transactions are rolled back, everything else is
// on disk afterwards. When ctx ends first the server is killed; it recovers at
// the next start, without its unlogged tables.
func (s *Server) Stop(ctx context.Context) error {
	err := s.child.stop(ctx)
	s.cleanup()
	return err
}
