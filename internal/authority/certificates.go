package authority

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rationhq/ration/policy"
)

// filesPeriod is how late a file that has changed is read.
const filesPeriod = time.Second

// Files are the paths of what TLS needs. The last two are given both or not at
// all: without them nobody is asked for a certificate.
type Files struct {
	Certificate, Key string // of the server, PEM
	ClientCA         string // the authorities of client certificates, PEM
	Clients          string // who has which name in a certificate, JSON ([policy.ParseClients])
}

// Certificates are the server's own and what is known of its clients', as
// their files were when they last were in order.
type Certificates struct {
	files Files
	log   *slog.Logger
	held  atomic.Pointer[held]
}

// held is what was in the files at one time.
type held struct {
	contents    [4][]byte // of the files as Files names them
	config      *tls.Config
	authorities []*x509.Certificate
	clients     []policy.Client
}

// LoadCertificates reads the files. Its errors name the file.
func LoadCertificates(files Files, log *slog.Logger) (*Certificates, error) {
	c := &Certificates{files: files, log: log}
	_, err := c.reload()
	return c, err
}

// Config is for a server: each connection gets what is held when it begins.
func (c *Certificates) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.held.Load().config, nil },
	}
}

// Run looks at the files once a second until ctx ends, which is no error. What
// is held stays until all of them are in order: they are replaced one by one.
func (c *Certificates) Run(ctx context.Context) error {
	ticker := time.NewTicker(filesPeriod)
	defer ticker.Stop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		changed, err := c.reload()
		switch {
		case err != nil && err.Error() != told:
			told = err.Error()
			c.log.WarnContext(ctx, "certificates cannot be read; those from before stay", "error", err)
		case changed:
			told = ""
			c.log.InfoContext(ctx, "certificates are replaced")
		}
	}
}

// reload takes over what is in the files, if it is anything new.
func (c *Certificates) reload() (changed bool, err error) {
	next := new(held)
	for i, path := range []string{c.files.Certificate, c.files.Key, c.files.ClientCA, c.files.Clients} {
		if path == "" {
			continue
		}
		next.contents[i], err = os.ReadFile(path) //nolint:gosec // the operator's own files, by the operator's own word
		if err != nil {
			return false, err
		}
	}
	if before := c.held.Load(); before != nil && slices.EqualFunc(before.contents[:], next.contents[:], bytes.Equal) {
		return false, nil
	}
	if err := next.read(&c.files); err != nil {
		return false, err
	}
	c.held.Store(next)
	return true, nil
}

// read makes of the contents what they stand for.
func (h *held) read(files *Files) error {
	certificate, err := tls.X509KeyPair(h.contents[0], h.contents[1])
	if err != nil {
		return fmt.Errorf("%s and %s: %w", files.Certificate, files.Key, err)
	}
	h.config = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{certificate},
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if files.ClientCA == "" {
		return nil
	}
	if h.authorities, err = readAuthorities(h.contents[2]); err != nil {
		return fmt.Errorf("%s: %w", files.ClientCA, err)
	}
	if h.clients, err = policy.ParseClients(h.contents[3]); err != nil {
		return fmt.Errorf("%s: %w", files.Clients, err)
	}
	h.config.ClientCAs = x509.NewCertPool()
	for _, authority := range h.authorities {
		h.config.ClientCAs.AddCert(authority)
	}
	// Not required: a caller may have a bearer token instead.
	h.config.ClientAuth = tls.VerifyClientCertIfGiven
	return nil
}

// readAuthorities reads the certificates of a PEM file.
func readAuthorities(content []byte) (authorities []*x509.Certificate, err error) {
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		authorities = append(authorities, authority)
	}
	if len(authorities) == 0 {
		return nil, errors.New("holds no certificate in PEM form")
	}
	return authorities, nil
}

// verify says who the client of a connection is. The handshake has proved that
// it has the certificate's key; that the certificate still holds is asked
// again, for connections live long.
func (c *Certificates) verify(state *tls.ConnectionState) (policy.Caller, error) {
	held, leaf := c.held.Load(), state.PeerCertificates[0]
	ofOurs := slices.ContainsFunc(state.VerifiedChains, func(chain []*x509.Certificate) bool {
		return slices.ContainsFunc(held.authorities, chain[len(chain)-1].Equal)
	})
	if !ofOurs || time.Now().After(leaf.NotAfter) {
		return policy.Caller{}, unauthenticated("The client certificate does not hold any more.", nil)
	}
	for i := range held.clients {
		if isNamed(&held.clients[i], leaf) {
			return held.clients[i].Caller, nil
		}
	}
	return policy.Caller{}, unauthenticated("No caller has a name of the client certificate.", nil)
}

// isNamed says whether a certificate has a client's name.
func isNamed(client *policy.Client, leaf *x509.Certificate) bool {
	switch {
	case client.URI != "":
		for _, uri := range leaf.URIs {
			if uri.String() == client.URI {
				return true
			}
		}
		return false
	case client.DNS != "":
		return slices.ContainsFunc(leaf.DNSNames, func(name string) bool { return strings.EqualFold(name, client.DNS) })
	}
	return slices.Contains(leaf.EmailAddresses, client.Email)
}
