package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rationhq/ration/httpapi"
	"github.com/rationhq/ration/policy"
)

// policyFileEnd is how the name of a file that holds a policy ends; what stands
// before it is the policy's id.
const policyFileEnd = ".json"

// policyReadMax is a byte more than the service accepts, so that it is seen that
// a policy is too long. More than that the service would not read to the end,
// and nobody would hear what it says.
const policyReadMax = httpapi.PolicyBytesMax + 1

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
		body, err := readPolicyFile(filepath.Join(folder, entry.Name()))
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

// readPolicy reads what a change of a policy is, from a file or, by `-`, from
// standard input. Whether it is one is for others to say.
func (p *program) readPolicy(file string) ([]byte, error) {
	if file == "-" {
		return readPolicyText(p.in)
	}
	return readPolicyFile(file)
}

func readPolicyFile(name string) ([]byte, error) {
	opened, err := os.Open(name) //nolint:gosec // the caller's own file, by the caller's own word
	if err != nil {
		return nil, err
	}
	defer opened.Close() //nolint:errcheck // it was only read
	return readPolicyText(opened)
}

func readPolicyText(from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, policyReadMax))
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	return body, nil
}

// fileFaults names every fault of a file, a line each.
func fileFaults(name string, err error) error {
	var all []error
	for _, fault := range lintFaults(err) {
		all = append(all, fmt.Errorf("%s: %s", name, fault))
	}
	return errors.Join(all...)
}

// policyFileID is the id of the policy that a file of a name has.
func policyFileID(name string) string { return strings.TrimSuffix(filepath.Base(name), policyFileEnd) }

// parsePolicyFile reads what a file of a name has.
func parsePolicyFile(name string, body []byte) (policyFile, error) {
	file := policyFile{id: policyFileID(name), body: body}
	if policy.ValidID(file.id) != nil {
		return file, fmt.Errorf("%q cannot be a policy's id, which the file's name is", file.id)
	}
	var err error
	file.change, err = parsePolicy(body)
	return file, err
}

// parsePolicy reads a change as the service would.
func parsePolicy(body []byte) (*policy.Change, error) {
	if len(body) > httpapi.PolicyBytesMax {
		return nil, fmt.Errorf("is longer than %d bytes", httpapi.PolicyBytesMax)
	}
	return policy.ParseChange(body)
}
