// Package authority says who calls: the holder of a token, of a client
// certificate, or of a bearer token of an OpenID issuer.
//
// Nothing is asked of anybody while a caller waits, but an issuer for a key
// that it has not shown yet: tokens, certificates and keys are held in memory
// and swapped whole when they change, and go on to be used while the store or
// the issuer is away.
package authority
