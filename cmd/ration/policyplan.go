package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// What a plan does with a policy.
const (
	planCreate = "create"
	planChange = "change"
	planDelete = "delete"
	planKeep   = "unchanged" // has the content already
	planLeave  = "left"      // is not in the folder, which nobody said to mean anything
)

// plan is what it takes to bring the policies in force to what a folder has:
// what is created and changed by id, then what the folder does not have.
type plan []planStep

// planStep is one policy of a plan.
type planStep struct {
	ID       string          `json:"id"`
	Action   string          `json:"action"`
	Replaces int             `json:"replaces,omitempty"` // the version in force that the plan saw
	Trial    json.RawMessage `json:"dryRun,omitempty"`   // what the service answered to it
	Done     int             `json:"done,omitempty"`     // the version that carrying it out made

	trial  trial
	body   []byte
	reason string
}

// planOf tries what every file would change. The error is that of the first
// file that the service refuses.
func (a *adminAPI) planOf(ctx context.Context, files []policyFile, flags applyFlags) (plan, error) {
	inForce, _, err := a.list(ctx)
	if err != nil {
		return nil, err
	}
	versions := make(map[string]int, len(inForce))
	for i := range inForce {
		versions[inForce[i].ID] = inForce[i].Version
	}
	var steps plan
	for _, file := range files {
		step := planStep{ID: file.id, Replaces: versions[file.id], body: withReason(file.body, flags.reason)}
		if step.trial, err = a.tryPut(ctx, step.ID, step.Replaces, step.body); err != nil {
			return nil, fmt.Errorf("%s%s: %w", file.id, policyFileEnd, err)
		}
		step.Trial = step.trial.raw
		switch {
		case step.Replaces == 0:
			step.Action = planCreate
		case len(step.trial.Changes) == 0: // a reset that the file still asks for came with its content
			step.Action = planKeep
		default:
			step.Action = planChange
		}
		steps = append(steps, step)
		delete(versions, file.id)
	}
	for i := range inForce {
		if version, extra := versions[inForce[i].ID]; extra {
			step := planStep{ID: inForce[i].ID, Action: planLeave, Replaces: version, reason: flags.reason}
			if flags.prune {
				step.Action = planDelete
			}
			steps = append(steps, step)
		}
	}
	return steps, nil
}

// carryOut makes the step's change, unless the version in force is another than
// the plan saw.
func (s *planStep) carryOut(ctx context.Context, api *adminAPI) (policyVersion, error) {
	if s.Action == planDelete {
		return api.remove(ctx, s.ID, s.Replaces, s.reason, nil)
	}
	return api.put(ctx, s.ID, s.Replaces, s.body, nil)
}

// work counts the steps that change something.
func (p plan) work() int { return p.count(planCreate) + p.count(planChange) + p.count(planDelete) }

func (p plan) count(action string) (n int) {
	for i := range p {
		if p[i].Action == action {
			n++
		}
	}
	return n
}

// progress says what of a plan was done and what was not.
func (p plan) progress() string {
	var done, open []string
	for i := range p {
		switch step := &p[i]; {
		case step.Done > 0:
			done = append(done, fmt.Sprintf("%s v%d", step.ID, step.Done))
		case step.Action != planKeep && step.Action != planLeave:
			open = append(open, step.ID)
		}
	}
	if len(done) == 0 {
		return "  nothing was done; not done: " + strings.Join(open, ", ")
	}
	return fmt.Sprintf("  done: %s; not done: %s", strings.Join(done, ", "), strings.Join(open, ", "))
}

// printPlan prints a plan for people.
func (p *program) printPlan(steps plan, prune bool) error {
	paint := p.painter()
	for i := range steps {
		step := &steps[i]
		switch step.Action {
		case planCreate:
			fmt.Fprintln(p.out, paint.added("create "+step.ID))
		case planChange:
			fmt.Fprintln(p.out, paint.strong(fmt.Sprintf("change %s v%d", step.ID, step.Replaces)))
		case planDelete:
			fmt.Fprintln(p.out, paint.gone(fmt.Sprintf("delete %s v%d", step.ID, step.Replaces)))
			continue
		case planLeave:
			fmt.Fprintf(p.out, "leave %s v%d, which the folder does not have\n", step.ID, step.Replaces)
			continue
		default:
			continue
		}
		if err := p.printChanges(&step.trial, paint); err != nil {
			return err
		}
	}
	summary := fmt.Sprintf("%d to create, %d to change, %d to delete, %d unchanged",
		steps.count(planCreate), steps.count(planChange), steps.count(planDelete), steps.count(planKeep))
	if left := steps.count(planLeave); left > 0 && !prune {
		summary += fmt.Sprintf(", %d left (--prune deletes them)", left)
	}
	fmt.Fprintln(p.out, summary)
	return nil
}
