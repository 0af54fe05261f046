# `make` alone prints what there is. Nothing here is needed to run or test Ration:
# `go run ./cmd/ration dev` and `go test ./...` work on a fresh clone.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GOLANGCI_VERSION := v2.15.0
# The linter at its pinned version, whatever else the machine has; see .ci/linter.
GOLANGCI := $$(.ci/linter $(GOLANGCI_VERSION))
# A count of executions, since a fuzzer that runs into a time limit while it
# still reads its corpus counts as failed; 10m looks for faults in earnest.
FUZZ_TIME ?= 2000x
# CI sets it to `go test -json`, to print every skipped test with its reason.
GO_TEST ?= go test
# The length of `make long`; CI runs a short form of it.
STEPS ?= 1000000
LONG ?= 10m
# What needs a database; everything else is the same in front of a container.
DATABASE_PACKAGES := ./migrations/... ./pgstore/... ./cmd/ration/... ./internal/dbtest/... ./internal/devpg/... ./internal/doctest/... ./internal/isolation/...
BENCH ?= .
BENCH_TIME ?= 1s

.PHONY: help
help: ## Print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/ration, a static binary
	CGO_ENABLED=0 go build -trimpath -o bin/ration ./cmd/ration

.PHONY: dev
dev: ## Start Ration on a private PostgreSQL, with example policies
	go run ./cmd/ration dev

.PHONY: test
test: ## Run every test; needs PostgreSQL's binaries or a Docker engine
	$(GO_TEST) -timeout 30m ./...

.PHONY: test-short
test-short: ## Run the tests that need nothing, in seconds
	$(GO_TEST) -short ./...

.PHONY: race
race: ## Run the tests of the concurrent packages under the race detector
	$(GO_TEST) -race -short ./policy/... ./limiter/... ./httpapi/... ./internal/lifecycle/...

.PHONY: long
long: ## Run the tests of the store at length: STEPS random steps, LONG of races
	RATION_STEPS=$(STEPS) RATION_LONG=$(LONG) $(GO_TEST) -race -count=1 -timeout 120m ./pgstore/... ./internal/memstore/...

.PHONY: container-test
container-test: ## Run the tests of the store on PostgreSQL in a container (RATION_TEST_IMAGE)
	RATION_TEST_CONTAINER=1 $(GO_TEST) -timeout 30m $(DATABASE_PACKAGES)

.PHONY: fuzz-smoke
fuzz-smoke: ## Run every fuzz target for FUZZ_TIME (2000x, 10m)
	@for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r -n1 dirname | sort -u); do \
	  for target in $$(go test -list '^Fuzz' "$$package" | grep '^Fuzz'); do \
	    echo "$$package $$target"; \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ_TIME) "$$package"; \
	  done; \
	done

.PHONY: bench
bench: ## Run the benchmarks (BENCH=pattern, BENCH_TIME=1s or 1x)
	go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCH_TIME) -benchmem ./...

.PHONY: bench-http
bench-http: ## Measure decisions over HTTP beside the same handler without a store, by wrk (SECONDS_A_TURN=30)
	loadtest/http.sh $(SECONDS_A_TURN)

.PHONY: bench-sweep
bench-sweep: ## Measure decisions over HTTP while a reduction is swept on a million buckets (ROWS=1000000, SECONDS_A_TURN=30)
	loadtest/sweep.sh $(SECONDS_A_TURN)

.PHONY: lint
lint: ## Check formatting and run the linters
	go vet ./...
	$(GOLANGCI) config verify
	$(GOLANGCI) run ./...

.PHONY: generate
generate: ## Write everything that is generated
	go generate ./...

.PHONY: verify
verify: generate ## Fail when something generated, or go.mod, is behind its source
	go mod tidy -diff
	git diff --exit-code
	@behind=$$(git ls-files --others --exclude-standard); \
	[[ -z $$behind ]] || { echo "not in git: $$behind"; exit 1; }

.PHONY: migration
migration: ## Begin the next migration: make migration name=add_thing
	@[[ "$(name)" =~ ^[a-z][a-z0-9_]*$$ ]] || { echo "usage: make migration name=add_thing"; exit 2; }
	@last=$$(ls migrations/ | sed -n 's/^\([0-9]\{6\}\)_.*\.up\.sql$$/\1/p' | sort | tail -n 1); \
	next=$$(printf '%06d' $$((10#$${last:-0} + 1))); \
	for way in up down; do \
	  file=migrations/$${next}_$(name).$$way.sql; \
	  echo "-- Why this step, and what it does to a running system." >"$$file"; \
	  echo "$$file"; \
	done
