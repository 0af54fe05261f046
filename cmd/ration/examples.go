package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/rationhq/ration/pgstore"
	"github.com/rationhq/ration/policy"
)

// exampleFiles hold the policies that `ration dev` begins with: bodies of a
// PUT, named by the policy's id.
//
//go:embed examples/*.json
var exampleFiles embed.FS

// installExamples installs those example policies that the store does not
// have: what somebody has made of them stays.
func installExamples(ctx context.Context, store *pgstore.Store) error {
	const folder = "examples"
	entries, err := exampleFiles.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("list the example policies: %w", err)
	}
	for _, entry := range entries {
		body, err := exampleFiles.ReadFile(path.Join(folder, entry.Name()))
		if err != nil {
			return fmt.Errorf("read an example policy: %w", err)
		}
		change, err := policy.ParseChange(body)
		if err != nil {
			return fmt.Errorf("example policy %s: %w", entry.Name(), err)
		}
		change.Reason = "example policy"
		_, _, err = store.Put(ctx, policy.Put{ID: strings.TrimSuffix(entry.Name(), ".json"), Change: change, Author: policy.Author{Actor: "ration dev"}})
		if known, ok := errors.AsType[*policy.Error](err); ok && known.Reason == policy.ReasonVersionConflict {
			continue // the store has it
		}
		if err != nil {
			return fmt.Errorf("install example policy %s: %w", entry.Name(), err)
		}
	}
	return nil
}
