package authority

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// issued is a certificate with its key.
type issued struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issue makes a certificate by an authority, or with none one of its own.
func issue(t *testing.T, by *issued, template x509.Certificate) *issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	template.Subject = pkix.Name{CommonName: t.Name()}
	template.NotBefore = time.Now().Add(-time.Minute)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	if by == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
		by = &issued{&template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, by.certificate, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &issued{certificate, key}
}

// client makes a client's certificate with the names that a template has.
func client(t *testing.T, by *issued, names x509.Certificate) *issued {
	t.Helper()
	names.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return issue(t, by, names)
}

// pem gives certificate and key as they are in files.
func (i *issued) pem(t *testing.T) (certificate, key []byte) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.certificate.Raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// folder holds the files of a server.
type folder struct {
	t     *testing.T
	files Files
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	return &folder{t, Files{Certificate: at("server.pem"), Key: at("server.key"), ClientCA: at("ca.pem"), Clients: at("clients.json")}}
}

func (f *folder) write(path string, content []byte) {
	f.t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *folder) server(server *issued) {
	certificate, key := server.pem(f.t)
	f.write(f.files.Certificate, certificate)
	f.write(f.files.Key, key)
}

func (f *folder) ca(authority *issued) {
	certificate, _ := authority.pem(f.t)
	f.write(f.files.ClientCA, certificate)
}

func (f *folder) load() *Certificates {
	f.t.Helper()
	certificates, err := LoadCertificates(f.files, discard())
	if err != nil {
		f.t.Fatal(err)
	}
	return certificates
}

// reload has what changed taken over.
func reload(t *testing.T, certificates *Certificates) {
	t.Helper()
	if changed, err := certificates.reload(); !changed || err != nil {
		t.Fatalf("reload: %v, %v", changed, err)
	}
}

// whoami serves the name of whoever calls, by TLS.
func whoami(t *testing.T, certificates *Certificates) *httptest.Server {
	t.Helper()
	callers := &Authority{Certificates: certificates}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := callers.Authenticate(r)
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, caller.Name, caller.Gateway != nil)
	}))
	server.TLS = certificates.Config()
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// caller is a client of the server with a certificate of its own, or none.
func caller(t *testing.T, server, own *issued) *http.Client {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AddCert(server.certificate)
	if own != nil {
		// Presented whatever the server asks for: it is for the server to refuse.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &tls.Certificate{Certificate: [][]byte{own.certificate.Raw}, PrivateKey: own.key}, nil
		}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask gives what the server answers: a name, the status of a refusal, or
// "no connection".
func ask(t *testing.T, client *http.Client, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return "no connection"
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer.Status
	}
	return string(body)
}

const (
	someClients = `{"clients": [
		{"email": "ann@example.org", "name": "ann", "role": "admin"},
		{"dns": "edge.example.org", "name": "edge", "gateway": {}},
		{"uri": "spiffe://example.org/probe", "name": "probe", "role": "viewer"}]}`
	unauthorized = "401 Unauthorized"
)

func TestCertificatesNameTheirCallers(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	serverCert := issue(t, nil, x509.Certificate{DNSNames: []string{"example.com"}, IPAddresses: loopback()})
	authority := issue(t, nil, x509.Certificate{})
	f.server(serverCert)
	f.ca(authority)
	f.write(f.files.Clients, []byte(someClients))
	server := whoami(t, f.load())
	for name, c := range map[string]struct {
		own  *issued
		want string
	}{
		"email":            {client(t, authority, x509.Certificate{EmailAddresses: []string{"ann@example.org"}}), "annfalse"},
		"dns":              {client(t, authority, x509.Certificate{DNSNames: []string{"other", "Edge.Example.org"}}), "edgetrue"},
		"uri":              {client(t, authority, x509.Certificate{URIs: uris(t, "spiffe://example.org/probe")}), "probefalse"},
		"the first listed": {client(t, authority, x509.Certificate{DNSNames: []string{"edge.example.org"}, EmailAddresses: []string{"ann@example.org"}}), "annfalse"},
		"a name of none":   {client(t, authority, x509.Certificate{DNSNames: []string{"example.org"}}), unauthorized},
		"another kind":     {client(t, authority, x509.Certificate{DNSNames: []string{"ann@example.org"}}), unauthorized},
		"none":             {nil, unauthorized},
		"by another":       {client(t, issue(t, nil, x509.Certificate{}), x509.Certificate{EmailAddresses: []string{"ann@example.org"}}), "no connection"},
		"expired": {client(t, authority, x509.Certificate{
			EmailAddresses: []string{"ann@example.org"}, NotAfter: time.Now().Add(-time.Second),
		}), "no connection"},
		"a server's": {issue(t, authority, x509.Certificate{
			EmailAddresses: []string{"ann@example.org"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}), "no connection"},
	} {
		if got := ask(t, caller(t, serverCert, c.own), server.URL); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Files are replaced while the server runs, one by one, and what is in force
// counts for connections that were made before.
func TestCertificatesAreReplacedWhileRunning(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	first, second := issue(t, nil, x509.Certificate{IPAddresses: loopback()}), issue(t, nil, x509.Certificate{IPAddresses: loopback()})
	authority := issue(t, nil, x509.Certificate{})
	f.server(first)
	f.ca(authority)
	f.write(f.files.Clients, []byte(someClients))
	certificates := f.load()
	server := whoami(t, certificates)
	ann := client(t, authority, x509.Certificate{EmailAddresses: []string{"ann@example.org"}})
	kept := caller(t, first, ann)
	expect := func(what string, client *http.Client, want string) {
		t.Helper()
		if got := ask(t, client, server.URL); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	expect("at first", kept, "annfalse")

	// Half replaced: what was goes on.
	certificate, key := second.pem(t)
	f.write(f.files.Certificate, certificate)
	if _, err := certificates.reload(); err == nil {
		t.Error("a certificate with another's key is taken")
	}
	expect("half replaced", caller(t, first, ann), "annfalse")
	f.write(f.files.Key, key)
	reload(t, certificates)
	expect("a new connection, by the old certificate", caller(t, first, ann), "no connection")
	expect("a new connection", caller(t, second, ann), "annfalse")

	f.write(f.files.Clients, []byte(`{"clients": [{"email": "ann@example.org", "name": "anna", "role": "viewer"}]}`))
	reload(t, certificates)
	expect("the connection from before, of another name now", kept, "annafalse")
	f.write(f.files.Clients, []byte(`{"clients": [`))
	if _, err := certificates.reload(); err == nil {
		t.Error("half a file is taken")
	}
	f.write(f.files.Clients, []byte(`{"clients": [{"email": "ann@example.org", "name": "ann", "role": "viewer"}]}`))
	f.ca(issue(t, nil, x509.Certificate{}))
	reload(t, certificates)
	expect("the connection from before, by an authority that is none any more", kept, unauthorized)
	if changed, err := certificates.reload(); changed || err != nil {
		t.Errorf("nothing new: %v, %v", changed, err)
	}
}

func TestCertificatesAreLookedAtEverySecond(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	f.server(issue(t, nil, x509.Certificate{}))
	f.files.ClientCA, f.files.Clients = "", ""
	next := issue(t, nil, x509.Certificate{})
	synctest.Test(t, func(t *testing.T) {
		certificates := f.load()
		before := certificates.held.Load()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- certificates.Run(ctx) }()
		f.server(next)
		<-time.After(filesPeriod + time.Millisecond)
		if certificates.held.Load() == before {
			t.Error("what is new was not read")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestFaultyFilesAreNamed(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	wrong := func(what string) {
		t.Helper()
		if _, err := LoadCertificates(f.files, discard()); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	wrong("nothing there")
	f.server(issue(t, nil, x509.Certificate{}))
	f.write(f.files.ClientCA, []byte("nothing"))
	f.write(f.files.Clients, []byte(`{"clients": []}`))
	wrong("an authority that is none")
	f.ca(issue(t, nil, x509.Certificate{}))
	f.write(f.files.Clients, []byte(`{}`))
	wrong("no clients")
}

func uris(t *testing.T, text string) []*url.URL {
	t.Helper()
	parsed, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return []*url.URL{parsed}
}

func loopback() []net.IP { return []net.IP{net.IPv4(127, 0, 0, 1)} }
