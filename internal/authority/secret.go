package authority

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
)

// tokenPrefix begins every token, so that scanners of source code and logs
// find one that was leaked.
const tokenPrefix = "rat_"

// Secret is what makes a token its holder's: 256 random bits.
type Secret [32]byte

// NewSecret makes a secret that nobody can guess.
func NewSecret() (secret Secret) {
	_, _ = rand.Read(secret[:]) // never fails: it ends the process instead
	return secret
}

// Hash is what is kept of the secret. A plain hash is enough: nobody tries
// 2^256 secrets.
func (s *Secret) Hash() [32]byte { return sha256.Sum256(s[:]) }

// Token is the text that the holder presents, of the token's number and the
// secret: rat_17_Jx3….
func (s *Secret) Token(id int64) string {
	return tokenPrefix + strconv.FormatInt(id, 10) + "_" + base64.RawURLEncoding.EncodeToString(s[:])
}

// parseToken reads what Token writes.
func parseToken(text string) (id int64, secret Secret, ok bool) {
	number, encoded, found := strings.Cut(strings.TrimPrefix(text, tokenPrefix), "_")
	if !found || len(encoded) != base64.RawURLEncoding.EncodedLen(len(secret)) {
		return 0, secret, false
	}
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, secret, false
	}
	decoded, err := base64.RawURLEncoding.Decode(secret[:], []byte(encoded))
	return id, secret, err == nil && decoded == len(secret)
}
