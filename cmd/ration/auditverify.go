package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rationhq/ration/policy"
)

// auditFaults say what is wrong with a row, as said of it.
var auditFaults = map[policy.AuditFault]string{
	policy.AuditChanged:  "is not as it was written",
	policy.AuditMissing:  "is missing, and maybe more behind it",
	policy.AuditCut:      "is missing, and all behind it: the end of the audit was cut off",
	policy.AuditAdded:    "was put behind the newest one without being chained",
	policy.AuditHeadless: "is the last one, but the head of the chain is gone",
}

// auditKnown is a row's hash from an earlier look.
type auditKnown struct {
	row  int64 // 0: none
	hash []byte
}

func (p *program) auditVerifyCommand() *cobra.Command {
	var known string
	command := reads(&cobra.Command{
		Use:   "verify",
		Short: "Check that the audit is as it was written",
		Long: "Walks the chain of the audit's rows in the database RATION_DATABASE_URL, whose role may be ration_reader. Exits 0 when\n" +
			"every row is as it was written, 1 when one is not, saying which, or when it could not look.\n\n" +
			"Keep what it prints in another system: with --known it also checks that the row printed then has the same hash still,\n" +
			"which not even somebody who may write everything anew can forge.",
		Example: "  ration audit verify\n  ration audit verify --known 1204:0f5c…",
		Args:    cobra.NoArgs,
	}, databaseConfig{})
	form := outputFlag(command, "text or json")
	command.RunE = func(command *cobra.Command, _ []string) error {
		asJSON, err := form.isJSON()
		if err != nil {
			return err
		}
		remembered, err := readKnown(known)
		if err != nil {
			return usageError{err}
		}
		return p.verifyAudit(command.Context(), remembered, asJSON)
	}
	command.Flags().StringVar(&known, "known", "", "a `ROW:HASH` that was printed before")
	return command
}

func readKnown(text string) (auditKnown, error) {
	if text == "" {
		return auditKnown{}, nil
	}
	number, digits, _ := strings.Cut(text, ":")
	row, numberErr := strconv.ParseInt(number, 10, 64)
	hash, hashErr := hex.DecodeString(digits)
	if numberErr != nil || hashErr != nil || row < 1 || len(hash) != sha256.Size {
		return auditKnown{}, fmt.Errorf("--known %q is not a row and its whole hash, as verify prints them", text)
	}
	return auditKnown{row: row, hash: hash}, nil
}

func (p *program) verifyAudit(ctx context.Context, known auditKnown, asJSON bool) error {
	store, err := p.openStore(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	chain, err := store.VerifyAudit(ctx)
	if err != nil {
		return err
	}
	if chain.Fault != policy.AuditWhole || known.row == 0 {
		return p.sayChain(&chain, "%d rows before it are whole", asJSON)
	}
	hash, err := store.AuditHash(ctx, known.row)
	switch missing, ok := errors.AsType[*policy.Error](err); {
	case ok && missing.Code == policy.CodeNotFound:
		chain.Fault, chain.Row = policy.AuditCut, known.row
	case err != nil:
		return err
	case !bytes.Equal(hash, known.hash):
		chain.Fault, chain.Row = policy.AuditChanged, known.row
	}
	return p.sayChain(&chain, "the %d rows are a whole chain, but another one than --known is of", asJSON)
}

// sayChain prints how the audit was found. That it is not whole is an error,
// with what there is to say then of how many rows.
func (p *program) sayChain(chain *policy.AuditChain, rows string, asJSON bool) error {
	var err error
	if chain.Fault != policy.AuditWhole {
		err = fmt.Errorf("the audit is not whole: row %d %s (%s); "+rows, chain.Row, auditFaults[chain.Fault], chain.Fault, chain.Rows)
	}
	head := fmt.Sprintf("%d:%s", chain.Last, hex.EncodeToString(chain.Hash))
	if asJSON {
		return errors.Join(json.NewEncoder(p.out).Encode(struct {
			Rows  int64             `json:"rows"`
			Known string            `json:"known"`
			Fault policy.AuditFault `json:"fault,omitempty"`
			Row   int64             `json:"row,omitempty"`
		}{chain.Rows, head, chain.Fault, chain.Row}), err)
	}
	switch {
	case err != nil:
	case chain.Rows == 0:
		fmt.Fprintln(p.out, "no rows yet")
	default:
		fmt.Fprintf(p.out, "%d rows, whole. The newest is %s\n", chain.Rows, head)
	}
	return err
}
