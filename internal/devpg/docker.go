package devpg

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// DefaultImage is the official image of the newest supported PostgreSQL.
const DefaultImage = "postgres:18"

// engineTimeout bounds the question whether a Docker engine runs; one that
// takes longer is not running.
const engineTimeout = 5 * time.Second

// startDocker runs the server in a container that is removed when it stops.
// The data lives in a volume named after the folder, so that a second start
// finds it; the folder itself keeps only the password.
func startDocker(ctx context.Context, config Config) (*Server, error) {
	if err := engineRuns(ctx); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data's folder: %w", err)
	}
	password, err := keptPassword(filepath.Join(config.Dir, "docker-password"))
	if err != nil {
		return nil, err
	}
	image := config.Image
	if image == "" {
		image = DefaultImage
	}
	name := ContainerName(config.Dir)
	command := exec.Command("docker", dockerArguments(config, name, image)...) //nolint:noctx // it is stopped by signal, in order
	// By environment: arguments are seen by everybody on the machine.
	command.Env = append(os.Environ(), "POSTGRES_PASSWORD="+password)
	s := &Server{From: image, host: "127.0.0.1", password: password, cleanup: func() {}}
	// The client stays attached: it passes our signals on, and its end is the
	// container's.
	if s.child, err = startChild(command, config.Log); err != nil {
		return nil, err
	}
	err = s.awaitPublished(ctx, name)
	if err == nil {
		err = s.awaitReady(ctx)
	}
	if err == nil {
		return s, nil
	}
	if strings.Contains(s.child.tail.String(), "is already in use by container") {
		return nil, &InUseError{Dir: config.Dir}
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), killWait)
	defer cancel()
	return nil, errors.Join(err, s.Stop(stopping))
}

// ContainerName is what the container for a folder (an absolute path) and the
// volume with its data are called.
func ContainerName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "ration-dev-" + hex.EncodeToString(sum[:6]) // 48 bits: folders of one machine
}

func dockerArguments(config Config, name, image string) []string {
	arguments := []string{
		"run", "--rm", "--name", name, "--stop-signal", "SIGINT",
		"--env", "POSTGRES_PASSWORD", "--env", "POSTGRES_USER=" + Superuser, "--env", "POSTGRES_DB=postgres",
		"--env", "POSTGRES_INITDB_ARGS=--encoding=UTF8 --locale=C.UTF-8",
		// A folder of our own: the images moved theirs between 17 and 18.
		"--env", "PGDATA=/ration/data", "--volume", name + ":/ration",
		"--publish", "127.0.0.1::" + strconv.Itoa(containerPort),
		"--shm-size", "512m", // shared_buffers are not in /dev/shm, parallel queries' tables are
		image, "postgres",
	}
	return append(arguments, settings(config)...)
}

// containerPort is where PostgreSQL listens inside the container.
const containerPort = 5432

func engineRuns(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	if _, err := exec.LookPath("docker"); err != nil {
		return missing("no docker command")
	}
	output, err := exec.CommandContext(ctx, "docker", "version", "--format", "{{.Server.Version}}").CombinedOutput()
	if err != nil {
		return missing("no Docker engine answers: %s", strings.TrimSpace(string(output)))
	}
	return nil
}

// awaitPublished waits until the engine has published the container's port
// and remembers it. Fetching the image comes first, and may take a while.
func (s *Server) awaitPublished(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	tick := time.NewTicker(publishedPoll)
	defer tick.Stop()
	for {
		output, err := exec.CommandContext(ctx, "docker", "port", name, strconv.Itoa(containerPort)).Output()
		if address, _, _ := strings.Cut(string(output), "\n"); err == nil && address != "" {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return fmt.Errorf("read the published port: %w", err)
			}
			s.port, err = strconv.Atoi(port)
			return err
		}
		select {
		case <-tick.C:
		case <-s.child.done:
			return missing("docker run: %v:\n%s", s.child.err, s.child.tail)
		case <-ctx.Done():
			return fmt.Errorf("container %s does not start: %w", name, context.Cause(ctx))
		}
	}
}

// pullTimeout bounds the fetching of an image of some 150 MB.
const pullTimeout = 10 * time.Minute

// publishedPoll is how often the engine is asked; each question is a process.
const publishedPoll = 200 * time.Millisecond

// keptPassword is the cluster's password, made at the first start.
func keptPassword(path string) (string, error) {
	kept, err := os.ReadFile(path)
	if err == nil && len(kept) > 0 {
		return string(kept), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails: it ends the process instead
	password := hex.EncodeToString(random)
	if err := os.WriteFile(path, []byte(password), 0o600); err != nil {
		return "", fmt.Errorf("keep the password: %w", err)
	}
	return password, nil
}
