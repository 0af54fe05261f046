package policy

// Token is what lets a caller in who presents its secret.
type Token struct {
	ID     int64
	Caller Caller
	Hash   [32]byte // SHA-256 of the secret, which has 256 random bits; the secret itself is kept nowhere

	CreatedAtMicros int64
	CreatedBy       string // the database role that made it
	ExpiresAtMicros int64  // 0: never
	RevokedAtMicros int64  // 0: it is not
}
