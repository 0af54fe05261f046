package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// tokenMinutes is how the instants of a token are told, in UTC.
const tokenMinutes = "2006-01-02 15:04"

// tokenRow is a token as it is told to programs.
type tokenRow struct {
	ID        int64           `json:"id"`
	Name      string          `json:"name"`
	Role      string          `json:"role,omitempty"`    // of an operator
	Gateway   json.RawMessage `json:"gateway,omitempty"` // of a gateway: what it may speak for
	CreatedAt time.Time       `json:"createdAt"`
	CreatedBy string          `json:"createdBy"` // the database role
	ExpiresAt time.Time       `json:"expiresAt,omitzero"`
	RevokedAt time.Time       `json:"revokedAt,omitzero"`
	Token     string          `json:"token,omitempty"` // once, when it is made
}

func tokenRowOf(token *policy.Token) *tokenRow {
	row := &tokenRow{
		ID: token.ID, Name: token.Caller.Name, Role: token.Caller.Role.String(), CreatedBy: token.CreatedBy,
		CreatedAt: time.UnixMicro(token.CreatedAtMicros).UTC(),
	}
	if gateway := token.Caller.Gateway; gateway != nil {
		row.Gateway = gateway.Scope.JSON()
	}
	if token.ExpiresAtMicros != 0 {
		row.ExpiresAt = time.UnixMicro(token.ExpiresAtMicros).UTC()
	}
	if token.RevokedAtMicros != 0 {
		row.RevokedAt = time.UnixMicro(token.RevokedAtMicros).UTC()
	}
	return row
}

// may says what the holder may do.
func (r *tokenRow) may() string {
	if r.Gateway == nil {
		return cmp.Or(r.Role, "nothing") // a scope that cannot be read
	}
	var scope map[string][]string
	if err := json.Unmarshal(r.Gateway, &scope); err != nil {
		return "nothing"
	}
	words := []string{"gateway"}
	for _, list := range slices.Sorted(maps.Keys(scope)) {
		words = append(words, list+" "+strings.Join(scope[list], " "))
	}
	return strings.Join(words, ", ")
}

// until says how long it lets in.
func (r *tokenRow) until() string {
	switch {
	case !r.RevokedAt.IsZero():
		return "revoked " + r.RevokedAt.Format(tokenMinutes) + " UTC"
	case r.ExpiresAt.IsZero():
		return "until revoked"
	}
	return "until " + r.ExpiresAt.Format(tokenMinutes) + " UTC"
}

func (p *program) tokenListCommand() *cobra.Command {
	return p.overStore(&cobra.Command{
		Use:   "list",
		Short: "List the tokens that were ever made, without what they let in by",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, store *pgstore.Store, _ []string, asJSON bool) error {
		tokens, err := store.ListTokens(ctx)
		if err != nil {
			return err
		}
		rows := make([]*tokenRow, len(tokens)) // none is [], not null
		for i := range tokens {
			rows[i] = tokenRowOf(&tokens[i])
		}
		if asJSON {
			return json.NewEncoder(p.out).Encode(map[string]any{"tokens": rows})
		}
		table := p.table()
		fmt.Fprintln(table, "ID\tNAME\tMAY\tLETS IN\tMADE (UTC)\tBY")
		for _, row := range rows {
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", row.ID, row.Name, row.may(), row.until(),
				row.CreatedAt.Format(tokenMinutes), row.CreatedBy)
		}
		return table.Flush()
	})
}
