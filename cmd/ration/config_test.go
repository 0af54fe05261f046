package main

import (
	"strings"
	"testing"

	"github.com/rationhq/ration/policy"
)

func TestEveryFaultIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	wrong := map[string]string{
		"RATION_HTTP_ADDR":           "nowhere",
		"RATION_ADMIN_ADDR":          "0.0.0.0:8081",
		"RATION_METRICS_ADDR":        "[::]:9090",
		"RATION_DECISION_TIMEOUT":    "fast",
		"RATION_CALL_TIMEOUT":        "-1s",
		"RATION_LANES":               "65",
		"RATION_QUEUE_MAX":           "many",
		"RATION_BATCH_MAX":           "1025",
		"RATION_OPERATION_RETENTION": "1ms",
		"RATION_JITTER":              "NaN",
		"RATION_RESET_HEADER":        "never",
		"RATION_PROBLEM_BASE":        "problems",
		"RATION_LOG_LEVEL":           "loud",
		"RATION_TLS_KEY":             "key.pem",
		"RATION_TLS_CLIENTS":         "clients.json",
		"RATION_OIDC_ISSUER":         "issuer",
		"RATION_OIDC_ROLES":          "sre=root",
	}
	environ := []string{"RATION_OPEN=true"}
	for name, value := range wrong {
		environ = append(environ, name+"="+value)
	}
	code, _, errs := command(t, environ, "", "serve")
	if code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	delete(wrong, "RATION_TLS_KEY") // what it needs is missing
	delete(wrong, "RATION_TLS_CLIENTS")
	for _, missing := range []string{"RATION_DATABASE_URL", "RATION_TLS_CERT", "RATION_TLS_CLIENT_CA", "RATION_OIDC_AUDIENCE"} {
		wrong[missing] = ""
	}
	for name := range wrong {
		if strings.Count(errs, "\n  "+name+" ") != 1 {
			t.Errorf("%s is not named once in:\n%s", name, errs)
		}
	}
}

// Only who asks nobody who he is has to keep to this machine.
func TestCallersThatAreKnownComeFromAnywhere(t *testing.T) {
	t.Parallel()
	listen := addresses{Decisions: "0.0.0.0:8080", Admin: "[::]:8081", Metrics: ":9090"}
	for open, ok := range map[bool]bool{false: true, true: false} {
		var found faults
		(&authorityConfig{Open: open}).check(&listen, &found)
		if (found.err() == nil) != ok {
			t.Errorf("open %v: %v", open, found.err())
		}
	}
}

func TestRolesOfGroups(t *testing.T) {
	t.Parallel()
	roles, err := parseRoles("cn=sre,on=call=operator, /staff=viewer")
	if err == nil {
		t.Errorf("a group without a role is read: %v", roles)
	}
	roles, err = parseRoles("cn=sre=admin, /staff=viewer")
	if err != nil || len(roles) != 2 || roles["cn=sre"] != policy.Admin || roles["/staff"] != policy.Viewer {
		t.Errorf("%v, %v", roles, err)
	}
}

func TestOnlyLoopback(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"127.0.0.1:8080": true, "127.9.9.9:0": true, "[::1]:8080": true, "localhost:8080": true, "[::ffff:127.0.0.1]:1": true,
		":8080": false, "0.0.0.0:8080": false, "[::]:8080": false, "10.0.0.1:8080": false, "example.org:8080": false, "127.0.0.1": false,
	} {
		var found faults
		found.checkLoopback("RATION_HTTP_ADDR", address, "it is open")
		if (found.err() == nil) != ok {
			t.Errorf("%q: %v", address, found.err())
		}
	}
}

func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	var config serviceConfig
	var found faults
	newEnvironment([]string{"RATION_LANES="}).read(&config, &found) // empty is not set
	config.check(&found)
	if err := found.err(); err != nil {
		t.Error(err)
	}
	if config.lanes() < 1 || config.lanes() > lanesByDefaultMax || config.Listen.Decisions != "127.0.0.1:8080" {
		t.Errorf("defaults: %+v", config)
	}
}
