package main

// databaseURL gives the database that a command works on.
func (p *program) databaseURL() (string, error) {
	var config databaseConfig
	var found faults
	p.environment.read(&config, &found)
	config.check(&found)
	return config.DatabaseURL, found.err()
}
