package dbtest

import (
	"context"
	"fmt"
	"os"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"

	"github.com/rationhq/ration/internal/devpg"
)

// startContainer starts the server in a container.
func startContainer(ctx context.Context) (*server, error) {
	if err := engineHealth(ctx); err != nil {
		return nil, err
	}
	image := os.Getenv("RATION_TEST_IMAGE")
	if image == "" {
		image = devpg.DefaultImage
	}
	running, err := postgres.Run(ctx, image,
		postgres.WithUsername(devpg.Superuser),
		postgres.WithPassword(rolePassword),
		postgres.WithDatabase("postgres"),
		// Tests run in parallel with pools of their own; nothing here outlives a crash.
		testcontainers.WithCmdArgs("-c", "max_connections=200", "-c", "fsync=off"),
		postgres.BasicWaitStrategies(),
	)
	terminate := func(ctx context.Context) error {
		return testcontainers.TerminateContainer(running, testcontainers.StopContext(ctx))
	}
	if err != nil {
		_ = terminate(ctx) // the first error is the one to tell
		return nil, fmt.Errorf("start a container of %s: %w", image, err)
	}
	address, err := running.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		_ = terminate(ctx)
		return nil, fmt.Errorf("find the container's port: %w", err)
	}
	return &server{adminURL: address, container: true, stop: terminate}, nil
}

func engineHealth(ctx context.Context) error {
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return fmt.Errorf("look for a Docker engine: %w", err)
	}
	defer provider.Close() //nolint:errcheck // it was only asked
	if err := provider.Health(ctx); err != nil {
		return fmt.Errorf("ask the Docker engine: %w", err)
	}
	return nil
}
