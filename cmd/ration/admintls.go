package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
)

// tls is how the administration listener is trusted, and shown a certificate;
// what is wrong with the files is noted. It is nil where nothing is said of it.
func (c *adminConfig) tls(found *faults) *tls.Config {
	if c.CA == "" && c.Certificate == "" && c.Key == "" {
		return nil
	}
	secured := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		content, err := os.ReadFile(c.CA)
		secured.RootCAs = x509.NewCertPool()
		switch {
		case err != nil:
			found.notef("RATION_ADMIN_CA", "cannot be read: %v", err)
		case !secured.RootCAs.AppendCertsFromPEM(content):
			found.notef("RATION_ADMIN_CA", "%s holds no certificate in PEM form", c.CA)
		}
	}
	if found.together([2]string{"RATION_ADMIN_CERT", "RATION_ADMIN_KEY"}, [2]string{c.Certificate, c.Key}) && c.Certificate != "" {
		certificate, err := tls.LoadX509KeyPair(c.Certificate, c.Key)
		if err != nil {
			found.notef("RATION_ADMIN_CERT", "and RATION_ADMIN_KEY: %v", err)
		}
		secured.Certificates = []tls.Certificate{certificate}
	}
	return secured
}
