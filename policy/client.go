package policy

import "github.com/go-json-experiment/json/jsontext"

// clientsMax bounds the clients of one list, which is looked through by each
// request.
const clientsMax = 1000

// Client says who presents a certificate with a subject alternative name. It
// has one name: a URI, a DNS name or an email address.
type Client struct {
	URI, DNS, Email string
	Caller          Caller
}

var clientsMembers = members[[]Client]{
	{name: "clients", required: true, read: readClients},
}

// The three names come first.
var clientMembers = members[Client]{
	{name: "uri", read: func(r *reader, c *Client, v jsontext.Value) { c.URI = r.text(v, 1, clientNameBytesMax) }},
	{name: "dns", read: func(r *reader, c *Client, v jsontext.Value) { c.DNS = r.text(v, 1, clientNameBytesMax) }},
	{name: "email", read: func(r *reader, c *Client, v jsontext.Value) { c.Email = r.text(v, 1, clientNameBytesMax) }},
	{name: "name", required: true, read: readCallerName},
	{name: "role", read: readRole},
	{name: "gateway", read: readGateway},
}

// clientNameBytesMax is that of a SPIFFE ID, the longest there are.
const clientNameBytesMax = 2048

// ParseClients reads a list of clients, {"clients": […]}. The error is an
// [*Error] of reason invalid-request with every fault.
func ParseClients(body []byte) ([]Client, error) {
	var r reader
	var clients []Client
	if object, ok := r.document(body); ok {
		readObject(&r, object, &clients, clientsMembers)
	}
	return clients, r.err(ReasonInvalidRequest)
}

func readClients(r *reader, clients *[]Client, value jsontext.Value) {
	r.each(value, clientsMax, func(element jsontext.Value) {
		var client Client
		found := readObject(r, element, &client, clientMembers)
		if element.Kind() == jsontext.KindBeginObject {
			one := func(names ...string) bool {
				count := 0
				for _, name := range names {
					if clientMembers.has(found, name) {
						count++
					}
				}
				return count == 1
			}
			if !one("uri", "dns", "email") {
				r.faultForm("needs one of uri, dns and email")
			}
			if !one("role", "gateway") {
				r.faultForm("needs either role, of an operator, or gateway")
			}
		}
		if client.Caller.Gateway != nil {
			client.Caller.Gateway.Name = client.Caller.Name
		}
		*clients = append(*clients, client)
	})
}

func readCallerName(r *reader, client *Client, value jsontext.Value) {
	client.Caller.Name = r.text(value, 1, TextBytesMax)
	if client.Caller.Name != "" && !ValidCallerName(client.Caller.Name) {
		r.fault("must match [A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
	}
}

func readRole(r *reader, client *Client, value jsontext.Value) {
	role, known := ParseRole(r.text(value, 1, TextBytesMax))
	if !known {
		r.fault("must be viewer, operator or admin")
	}
	client.Caller.Role = role
}

func readGateway(r *reader, client *Client, value jsontext.Value) {
	var scope Match
	readObject(r, value, &scope, scopeMembers)
	client.Caller.Gateway = &Gateway{Scope: GatewayScope(scope)}
}
