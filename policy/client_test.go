package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClients(t *testing.T) {
	t.Parallel()
	clients, err := ParseClients([]byte(`{"clients": [
		{"email": "ann@example.org", "name": "ann", "role": "admin"},
		{"uri": "spiffe://example.org/edge", "name": "edge", "gateway": {"accounts": ["acme"]}}
	]}`))
	want := []Client{
		{Email: "ann@example.org", Caller: Caller{Name: "ann", Role: Admin}},
		{URI: "spiffe://example.org/edge", Caller: Caller{
			Name: "edge", Gateway: &Gateway{Name: "edge", Scope: GatewayScope{Account: {"acme"}}},
		}},
	}
	if diff := cmp.Diff(want, clients); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestFaultyClientsAreRefused(t *testing.T) {
	t.Parallel()
	for body, pointers := range map[string]string{
		`{}`:                "/clients",
		`{"clients": [7]}`:  "/clients/0",
		`{"clients": [{}]}`: "/clients/0/name /clients/0 /clients/0",
		`{"clients": [{"dns": "a", "uri": "b", "name": "n", "role": "admin"}]}`:                         "/clients/0",
		`{"clients": [{"dns": "a", "name": "n", "role": "admin", "gateway": {}}]}`:                      "/clients/0",
		`{"clients": [{"dns": "a", "name": "n n", "role": "root"}]}`:                                    "/clients/0/name /clients/0/role",
		`{"clients": [{"dns": "a", "name": "n", "gateway": {"accounts": ["a", "a*b"], "x": 1}}, null]}`: "/clients/0/gateway/accounts/1 /clients/0/gateway/x /clients/1",
	} {
		_, err := ParseClients([]byte(body))
		checkPointers(t, body, err, pointers)
	}
}
