package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/rationhq/ration/policy"
)

// Installations tells what is in force in which instance of the service.
// Errors are *policy.Error or the context's.
type Installations interface {
	// Instances gives the generation of the policy set and the instances.
	Instances(ctx context.Context) (generation int64, instances []policy.Instance, err error)

	// Installation gives a policy's version in force, the generation of its last
	// change, and the instances; not-found when there is no such policy.
	Installation(ctx context.Context, id string) (policy.Installation, error)
}

// getInstallations answers in which instances a policy's version in force is
// in force.
func (a *admin) getInstallations(w http.ResponseWriter, r *http.Request) (int, error) {
	if _, err := readQuery(r); err != nil {
		return 0, err
	}
	id, err := pathPolicyID(r)
	if err != nil {
		return 0, err
	}
	installation, err := a.installations.Installation(r.Context(), id)
	if err != nil {
		return 0, err
	}
	return a.writeJSON(w, r, http.StatusOK, append(appendInstallation(nil, &installation), '\n')), nil
}

// appendInstallation appends the JSON of an installation.
func appendInstallation(dst []byte, installation *policy.Installation) []byte {
	dst = append(dst, '{')
	dst = appendPolicy(dst, installation.ID, installation.Version)
	dst = append(dst, `,"installed":`...)
	_, installed := waitingFor(installation.Instances, installation.Generation)
	dst = strconv.AppendBool(dst, installed)
	dst = append(dst, `,"instances":[`...)
	for i := range installation.Instances {
		dst = appendInstance(separate(dst), &installation.Instances[i], installation.Generation)
	}
	return append(dst, "]}"...)
}

// appendInstance appends the JSON of an instance, which has a generation in
// force or not.
func appendInstance(dst []byte, instance *policy.Instance, generation int64) []byte {
	state := "lost"
	if instance.Alive {
		state = "alive"
	}
	dst = append(dst, `{"instance":`...)
	dst = appendString(dst, instance.ID.String())
	dst = append(dst, `,"name":`...)
	dst = appendString(dst, instance.Name)
	dst = append(dst, `,"program":`...)
	dst = appendString(dst, instance.Version)
	dst = append(dst, `,"state":`...)
	dst = appendString(dst, state)
	dst = append(dst, `,"installed":`...)
	dst = strconv.AppendBool(dst, instance.Has(generation))
	dst = append(dst, `,"startedAt":`...)
	dst = appendInstant(dst, instance.StartedAtMicros)
	dst = append(dst, `,"seenAt":`...)
	dst = appendInstant(dst, instance.SeenAtMicros)
	return append(dst, '}')
}
