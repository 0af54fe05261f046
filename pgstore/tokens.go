package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rationhq/ration/policy"
)

// Tokens gives the tokens that let somebody in, and the instant of the store's
// clock at which they did.
func (s *Store) Tokens(ctx context.Context) (tokens []policy.Token, nowMicros int64, err error) {
	err = s.control(ctx, "read the tokens", func(ctx context.Context, tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT ration.clock_v1()").Scan(&nowMicros); err != nil {
			return err
		}
		tokens, err = readTokens(tx.Query(ctx, tokensSQL("t.secret")+`
			WHERE t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $1)`, nowMicros))
		return err
	})
	return tokens, nowMicros, err
}

// ListTokens gives all tokens that there ever were, by their number, without
// their hashes.
func (s *Store) ListTokens(ctx context.Context) (tokens []policy.Token, err error) {
	err = s.control(ctx, "list the tokens", func(ctx context.Context, tx pgx.Tx) error {
		tokens, err = readTokens(tx.Query(ctx, tokensSQL("''")+" ORDER BY t.id"))
		return notForRole(err, "Tokens are listed by the schema's owner, ration_service and ration_operator.")
	})
	return tokens, err
}

// CreateToken makes a token with its audit row, by token.Caller and
// token.Hash; a life of 0 ends with its revocation only. It gives the token as
// it is stored. The audit names the role of the connection as who made it.
func (s *Store) CreateToken(ctx context.Context, token policy.Token, life time.Duration, reason string) (policy.Token, error) {
	err := s.control(ctx, "make a token", func(ctx context.Context, tx pgx.Tx) error {
		var scope *string
		if gateway := token.Caller.Gateway; gateway != nil {
			text := string(gateway.Scope.JSON())
			scope = &text
		}
		err := tx.QueryRow(ctx, `
			SELECT r.o_id, r.o_created_at, coalesce(r.o_expires_at, 0), session_user::text
			FROM ration.create_token_v1($1, nullif($2, ''), $3::jsonb, $4, nullif($5::bigint, 0), session_user::text, $6) AS r`,
			token.Caller.Name, token.Caller.Role.String(), scope, token.Hash[:], life.Microseconds(), reason).
			Scan(&token.ID, &token.CreatedAtMicros, &token.ExpiresAtMicros, &token.CreatedBy)
		if isFull(err) {
			return &policy.Error{
				Code: policy.CodeOverloaded, Reason: policy.ReasonOverloaded, Cause: err,
				Detail: "There are 10,000 tokens that let somebody in: revoke those that nobody uses.",
			}
		}
		return notForRole(err, "Tokens are made by the schema's owner alone.")
	})
	return token, err
}

// RevokeToken ends a token with its audit row; revoked is false when it was
// revoked before. A token that never was is not-found.
func (s *Store) RevokeToken(ctx context.Context, id int64, reason string) (revoked bool, err error) {
	err = s.control(ctx, "revoke a token", func(ctx context.Context, tx pgx.Tx) error {
		var outcome string
		err := tx.QueryRow(ctx, "SELECT ration.revoke_token_v1($1, $2)", id, reason).Scan(&outcome)
		if err == nil && outcome == "unknown" {
			return &policy.Error{Code: policy.CodeNotFound, Reason: policy.ReasonNotFound, Detail: "There is no such token."}
		}
		revoked = outcome == "revoked"
		return notForRole(err, "Tokens are revoked by the schema's owner and ration_operator.")
	})
	return revoked, err
}

// notForRole says whose a call is that the connection's role may not make;
// another error stays what it is.
func notForRole(err error, whose string) error {
	if server, ok := errors.AsType[*pgconn.PgError](err); !ok || server.Code != "42501" {
		return err
	}
	return &policy.Error{Code: policy.CodeForbidden, Reason: policy.ReasonForbidden, Detail: whose, Cause: err}
}

// tokensSQL reads tokens, with their hashes from an expression.
func tokensSQL(hash string) string {
	return `
		SELECT t.id, t.name, coalesce(t.role, ''), t.scope::text, ` + hash + `::bytea, t.created_at, t.created_by,
		       coalesce(t.expires_at, 0), coalesce(t.revoked_at, 0)
		FROM ration.token AS t`
}

// readTokens reads every row of a query of [tokensSQL].
func readTokens(rows pgx.Rows, err error) ([]policy.Token, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (token policy.Token, err error) {
		var role string
		var scope *string
		var hash []byte
		err = row.Scan(&token.ID, &token.Caller.Name, &role, &scope, &hash, &token.CreatedAtMicros, &token.CreatedBy,
			&token.ExpiresAtMicros, &token.RevokedAtMicros)
		if err != nil {
			return token, err
		}
		copy(token.Hash[:], hash)
		if scope == nil {
			token.Caller.Role, _ = policy.ParseRole(role) // one of them: the table has no other
			return token, nil
		}
		parsed, err := policy.ParseGatewayScope([]byte(*scope))
		if err != nil {
			return token, nil //nolint:nilerr // made by hand: a scope that cannot be read allows nothing, and spoils no other token
		}
		token.Caller.Gateway = &policy.Gateway{Name: token.Caller.Name, Scope: parsed}
		return token, nil
	})
}
