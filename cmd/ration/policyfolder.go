package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rationhq/ration/policy"
)

// policyFileEnd is how the name of a file that holds a policy ends; what stands
// before it is the policy's id.
const policyFileEnd = ".json"

// policyFile is a policy as a file has it.
type policyFile struct {
	id     string
	body   []byte
	change *policy.Change
}

// readPolicyFolder reads the policies of a folder, ascending by id, and names
// every fault of every file.
func readPolicyFolder(folder string) ([]policyFile, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []policyFile
	var faults []error
	for _, entry := range entries {
		if entry.IsDir() || filepath.Ext(entry.Name()) != policyFileEnd {
			continue
		}
		body, err := os.ReadFile(filepath.Join(folder, entry.Name())) //nolint:gosec // the caller's own folder, by the caller's own word
		if err != nil {
			return nil, err
		}
		file, err := parsePolicyFile(entry.Name(), body)
		faults = append(faults, fileFaults(entry.Name(), err))
		files = append(files, file)
	}
	slices.SortFunc(files, func(a, b policyFile) int { return strings.Compare(a.id, b.id) })
	return files, errors.Join(faults...)
}

// fileFaults names every fault of a file, a line each.
func fileFaults(name string, err error) error {
	var all []error
	for _, fault := range lintFaults(err) {
		all = append(all, fmt.Errorf("%s: %s", name, fault))
	}
	return errors.Join(all...)
}

// parsePolicyFile reads what a file of a name has.
func parsePolicyFile(name string, body []byte) (policyFile, error) {
	file := policyFile{id: strings.TrimSuffix(filepath.Base(name), policyFileEnd), body: body}
	if policy.ValidID(file.id) != nil {
		return file, fmt.Errorf("%q cannot be a policy's id, which the file's name is", file.id)
	}
	var err error
	file.change, err = policy.ParseChange(body)
	return file, err
}
