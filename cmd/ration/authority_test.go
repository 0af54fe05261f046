package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// certificates writes certificates into a folder, each with its key.
type certificates struct {
	*testing.T

	dir    string
	issuer *x509.Certificate
	signer *ecdsa.PrivateKey
}

// newCertificates makes a folder with an authority, ca.pem.
func newCertificates(t *testing.T) *certificates {
	t.Helper()
	c := &certificates{T: t, dir: t.TempDir()}
	c.issue("ca", x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return c
}

func (c *certificates) at(name string) string { return filepath.Join(c.dir, name) }

// issue writes name.pem and name.key; the first one is the authority's.
func (c *certificates) issue(name string, template x509.Certificate) {
	c.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if c.issuer == nil {
		c.issuer, c.signer = &template, key
	}
	certificate, err := x509.CreateCertificate(rand.Reader, &template, c.issuer, &key.PublicKey, c.signer)
	if err != nil {
		c.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		c.Fatal(err)
	}
	c.write(name+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	c.write(name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

func (c *certificates) write(name string, content []byte) {
	c.Helper()
	if err := os.WriteFile(c.at(name), content, 0o600); err != nil {
		c.Fatal(err)
	}
}

// A client certificate is as good as a token, on the command line too, and
// what it stands for changes while the service runs.
func TestClientCertificatesOpenTheDoor(t *testing.T) {
	t.Parallel()
	c := newCertificates(t)
	c.issue("server", x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	c.issue("ann", x509.Certificate{
		EmailAddresses: []string{"ann@example.org"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	c.write("clients.json", []byte(`{"clients": [{"email": "ann@example.org", "name": "ann", "role": "viewer"}]}`))
	db := newDatabase(t)
	i := start(t, append(patient(), "RATION_DATABASE_URL="+db.ServiceURL(),
		"RATION_TLS_CERT="+c.at("server.pem"), "RATION_TLS_KEY="+c.at("server.key"),
		"RATION_TLS_CLIENT_CA="+c.at("ca.pem"), "RATION_TLS_CLIENTS="+c.at("clients.json")), "serve")
	anybody := []string{"RATION_ADMIN_URL=" + strings.Replace(i.admin, "http:", "https:", 1), "RATION_ADMIN_CA=" + c.at("ca.pem")}
	ann := append([]string{"RATION_ADMIN_CERT=" + c.at("ann.pem"), "RATION_ADMIN_KEY=" + c.at("ann.key")}, anybody...)
	const example = "examples/report-create.json"

	if code, _, errs := command(t, anybody, "", "policy", "list"); code != exitFailed || !strings.Contains(errs, "RATION_TOKEN") {
		t.Errorf("without a certificate: %d %s", code, errs)
	}
	if code, _, errs := command(t, ann, "", "policy", "list"); code != exitDone {
		t.Errorf("with one: %d %s", code, errs)
	}
	if code, _, errs := command(t, ann, "", "policy", "put", "p", example, "--create"); code != exitFailed || !strings.Contains(errs, "forbidden (403") {
		t.Errorf("a viewer changes a policy: %d %s", code, errs)
	}
	c.write("clients.json", []byte(`{"clients": [{"email": "ann@example.org", "name": "ann", "role": "operator"}]}`))
	eventually(t, "the viewer is an operator", func() bool {
		code, _, _ := command(t, ann, "", "policy", "put", "p", example, "--create")
		return code == exitDone
	})
}

func TestServeNeedsItsCertificates(t *testing.T) {
	t.Parallel()
	environ := append(anyPort(), "RATION_DATABASE_URL="+newDatabase(t).ServiceURL(), "RATION_TLS_CERT=/nothing/a.pem", "RATION_TLS_KEY=/nothing/a.key")
	if code, _, errs := command(t, environ, "", "serve"); code != exitFailed || !strings.Contains(errs, "/nothing/a.pem") {
		t.Errorf("%d %s", code, errs)
	}
}

// A folder of policies takes its time; it does not fail half-way.
func TestTheCommandLineKeepsThePace(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"type":"https://ration.dev/problems/too-many-changes","status":429,"retryAfterSeconds":0}`))
			return
		}
		_, _ = w.Write([]byte(`{"policies":[]}`))
	}))
	t.Cleanup(server.Close)
	code, _, errs := command(t, []string{"RATION_ADMIN_URL=" + server.URL}, "", "policy", "list")
	if code != exitDone || asked.Load() != 3 {
		t.Errorf("%d after %d calls: %s", code, asked.Load(), errs)
	}
}
