package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/rationhq/ration/policy"
)

// waitForInstall is the query parameter by which the caller of a change waits
// until it is in force in every instance.
const waitForInstall = "waitForInstall"

// Bounds of such a wait.
const (
	installWaitMin = time.Millisecond
	installWaitMax = time.Minute

	// installWaitsMax is how many callers may wait at once: each is a connection,
	// and five looks at the store a second.
	installWaitsMax = 32

	// A wait looks at the instances at once, after the first pause, and after
	// twice as long each time up to the last.
	installPauseMin = 5 * time.Millisecond
	installPauseMax = 200 * time.Millisecond

	// installAnswerMax is what remains to write the answer in when the wait is
	// over: as much as any other has.
	installAnswerMax = 15 * time.Second
)

// installWait is the wish of a caller to be answered when his change is in
// force. It is nil where he has none.
type installWait struct {
	admin  *admin
	atMost time.Duration
}

// beginInstallWait reads the wish, before anything is changed: one that cannot
// be granted changes nothing. What it begins is ended by end.
func (a *admin) beginInstallWait(query url.Values) (*installWait, error) {
	if !query.Has(waitForInstall) {
		return nil, nil //nolint:nilnil // no wish is no fault
	}
	atMost, err := time.ParseDuration(query.Get(waitForInstall))
	if err != nil || atMost < installWaitMin || atMost > installWaitMax || len(query[waitForInstall]) > 1 {
		return nil, badRequest(fmt.Sprintf("The query parameter %q must be a duration from 1ms to 60s, such as 5s, once.", waitForInstall))
	}
	select {
	case a.installWaits <- struct{}{}:
		return &installWait{admin: a, atMost: atMost}, nil
	default:
		return nil, &policy.Error{
			Code: policy.CodeOverloaded, Reason: policy.ReasonOverloaded,
			Detail: "Too many callers wait for installations now; nothing was changed.",
		}
	}
}

// cutInstallWait is beginInstallWait where the other parameters name a key: it
// takes its own out of them.
func (a *admin) cutInstallWait(query url.Values) (*installWait, error) {
	wait, err := a.beginInstallWait(query)
	delete(query, waitForInstall)
	return wait, err
}

// end makes room for the next caller.
func (i *installWait) end() {
	if i != nil {
		<-i.admin.installWaits
	}
}

// writeChange answers a change that was made; body is a JSON object. Who waits
// is answered when the change is in force in every instance that is alive, or
// lost for a moment only: as others are, with `installed` true. When the time
// is over first, the answer is 202 and names those that have not confirmed.
func (a *admin) writeChange(w http.ResponseWriter, r *http.Request, wait *installWait, status int, body []byte) int {
	if wait == nil {
		return a.writeJSON(w, r, status, body)
	}
	control := http.NewResponseController(w)
	end := time.Now().Add(wait.atMost + installAnswerMax)
	_ = control.SetWriteDeadline(end) // where there are none, there is none to move
	_ = control.SetReadDeadline(end)  // it would end the request's context
	missing, installed := wait.await(r.Context())
	body = bytes.TrimSuffix(bytes.TrimRight(body, "\n"), []byte("}"))
	if len(body) > len("{") {
		body = append(body, ',')
	}
	body = append(body, `"installed":`...)
	if installed {
		return a.writeJSON(w, r, status, append(body, "true}\n"...))
	}
	body = append(body, `false,"waitingFor":[`...)
	for i := range missing {
		body = append(separate(body), `{"instance":`...)
		body = appendString(body, missing[i].ID.String())
		body = append(body, `,"name":`...)
		body = appendString(body, missing[i].Name)
		body = append(body, `,"seenAt":`...)
		body = appendInstant(body, missing[i].SeenAtMicros)
		body = append(body, '}')
	}
	return a.writeJSON(w, r, http.StatusAccepted, append(body, "]}\n"...))
}

// await waits until every instance that is waited for has confirmed the
// generation that is in force now, and gives those that have not. The change
// was made, so that a store which cannot be asked is no error: it is asked
// again while there is time.
func (i *installWait) await(ctx context.Context) (missing []policy.Instance, installed bool) {
	ctx, cancel := context.WithTimeout(ctx, i.atMost)
	defer cancel()
	var target int64 // 0 before the store has answered
	for pause := installPauseMin; ; pause = min(2*pause, installPauseMax) {
		generation, instances, err := i.admin.installations.Instances(ctx)
		if err == nil {
			if target == 0 {
				target = generation
			}
			if missing, installed = waitingFor(instances, target); installed {
				return nil, true
			}
		}
		select {
		case <-ctx.Done():
			return missing, false
		case <-i.admin.stopping:
			return missing, false
		case <-time.After(pause):
		}
	}
}

// waitingFor gives the instances that are waited for and do not have a
// generation; installed says that all do. Where not even the one that looks is
// listed, the store has just lost its list: it is waited for.
func waitingFor(instances []policy.Instance, generation int64) (missing []policy.Instance, installed bool) {
	for i := range instances {
		switch instance := &instances[i]; {
		case !instance.Awaited:
		case instance.Has(generation):
			installed = true
		default:
			missing = append(missing, *instance)
		}
	}
	return missing, installed && len(missing) == 0
}
