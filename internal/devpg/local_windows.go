package devpg

import "context"

// PostgreSQL on Windows has neither signals nor a trusted unix socket; a
// container gives the same server with none of the exceptions.
func startLocal(context.Context, Config) (*Server, error) {
	return nil, missing("not done on Windows")
}

func startBinaries(context.Context, Config, []Binaries) (*Server, error) {
	return nil, missing("not done on Windows")
}
