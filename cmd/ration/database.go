package main

import (
	"context"

	"github.com/rationhq/ration/pgstore"
)

// databaseURL gives the database that a command works on.
func (p *program) databaseURL() (string, error) {
	var config databaseConfig
	var found faults
	p.environment.read(&config, &found)
	config.check(&found)
	return config.DatabaseURL, found.err()
}

// openStore opens the store in it.
func (p *program) openStore(ctx context.Context) (*pgstore.Store, error) {
	database, err := p.databaseURL()
	if err != nil {
		return nil, err
	}
	return pgstore.Open(ctx, pgstore.Config{URL: database})
}
