# All tasks of this repository, for people and for CI. Each target sets up what it needs.
# A line "name: ## what it does" is a target for people; `make` without a target lists them.

GO       ?= go
SECONDS  ?= 120
JOBS     ?= 50000
EVENTS   ?= 1000000
# Tests that simulate hours and thousands of jobs in virtual time. The race detector itself crashes in them after minutes (a SIGSEGV in its
# runtime), so they run without it.
STORIES  = engine/breaker_test.go engine/breaker_state_test.go engine/policy_test.go engine/redrive_test.go engine/retention_test.go engine/schedule_test.go engine/group_test.go engine/duty_test.go engine/outage_test.go engine/throttle_test.go
LONG     = TestOtherJobsCostNothing|TestTwoHundredKindsInOneQueueCostLikeOne|TestTheStoreKeepsTheLawsBehindATransactionPooler|TestTheStoreDoesWhatTheModelDoesBehindATransactionPooler|TestFiguresReadABoundedPartOfTheStore|TestALongTimeLimit|TestAHundredThousandMembers|TestASnoozeCostsNothing|TestWhicheverCallFails$(shell sed -n 's/^func \(Test[A-Za-z0-9]*\).*/|\1/p' $(STORIES) | tr -d '\n')
PACKAGES ?= ./...
# Packages that also run under the race detector: those with concurrent code. All packages would take too long on two cores.
RACE     ?= . ./store/postgres/... ./ops/... ./notify/sse ./notify/mail ./notify/nats ./notify/webhook
# The modules of the benchmark: contenders may need different versions of the same dependency.
BENCHES  = bench bench/measure bench/riversqlite bench/asynq bench/goqite bench/backlite

# No cgo, so that one build serves all checks. Only the race detector needs cgo.
export CGO_ENABLED = 0

STATICCHECK = $(GO) tool -modfile=$(CURDIR)/tools/go.mod staticcheck
GOVULNCHECK = $(GO) tool -modfile=$(CURDIR)/tools/go.mod govulncheck

.DEFAULT_GOAL := help
.PHONY: help run convert test lint screenshots bench load chaos mutants powerloss format postgres programs compiler cross race vulncheck

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## serve a demo on a temporary store, with an outage in progress: open the printed console address in a browser
	@$(GO) build -o bin/ ./cmd/holdfast
	@bin/holdfast serve --demo

convert: ## run the converter, an application on Holdfast: PDF to XML, in a browser at http://127.0.0.1:4750
	@cd apps && $(GO) build -o ../bin/ ./convert
	@bin/convert

test: postgres programs lint vulncheck cross ## run all checks: style, static analysis, tests on SQLite and PostgreSQL, race detector, 20 s of chaos on each store
	$(GO) test -timeout 25m $(PACKAGES)
	cd apps && $(GO) test -timeout 25m ./...
	cd internal/browsertest && $(GO) test -timeout 25m ./...
	cd bench && $(GO) test . && cd measure && $(GO) test .
	cd tools && $(GO) test -count=1 ./...
	@$(MAKE) --no-print-directory race

lint: ## run gofmt, go vet and staticcheck
	@unformatted="$$(gofmt -l . )"; if [ -n "$$unformatted" ]; then \
		echo "these files are not formatted; run 'make format':"; echo "$$unformatted"; exit 1; fi
	$(GO) vet -tags chaos ./...
	$(STATICCHECK) -tags chaos ./...
	cd apps && $(GO) vet ./... && $(STATICCHECK) ./...
	cd internal/browsertest && $(GO) vet ./... && $(STATICCHECK) ./...
	@for module in $(BENCHES); do \
		echo "vet $$module"; (cd $$module && $(GO) vet ./...) || exit 1; \
	done

vulncheck: ## find known vulnerabilities in called code with govulncheck; if its database cannot be reached, print that and continue
	@for module in . apps; do \
		out="$$(cd $$module && $(GOVULNCHECK) ./... 2>&1)"; code=$$?; \
		if [ $$code = 0 ]; then echo "govulncheck $$module: no known vulnerability is called"; continue; fi; \
		case "$$out" in \
		*"fetching vulnerabilities"*) echo "govulncheck $$module: NOT CHECKED, the vulnerability database cannot be reached"; break;; \
		esac; \
		echo "$$out"; exit 1; \
	done

format: ## format every Go file with gofmt
	gofmt -w .

race: compiler ## run the tests of concurrent packages under the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout 25m -skip '$(LONG)' $(RACE)
	$(GO) run ./internal/race -skip '$(LONG)' ./engine

bench: postgres ## compare with River, Asynq and others, about 15 minutes; QUICK=1 for about 4
	cd bench && $(GO) run .

load: ## run the converter under load, 200 concurrent uploads and 5,000 conversions; print speed and memory
	cd apps && $(GO) test -timeout 60m -count 1 -v ./convert -run TestUnderLoad -args -load.uploads 200 -load.jobs 5000

screenshots: programs ## take screenshots of the console in a real browser for docs/console
	cd internal/browsertest && $(GO) test -count 1 ./console -run TestPictures -args -pictures $(CURDIR)/docs/console

chaos: postgres ## kill, freeze and disconnect real processes on both stores; SECONDS=120 each, redrive JOBS=50000 dead letters, follow EVENTS=1000000
	@$(GO) build -tags chaos -o bin/holdfast-chaos ./cmd/holdfast
	bin/holdfast-chaos chaos --store sqlite --seconds $(SECONDS)
	bin/holdfast-chaos chaos --store postgres --seconds $(SECONDS)
	bin/holdfast-chaos chaos redrive --store sqlite --jobs $(JOBS)
	bin/holdfast-chaos chaos redrive --store postgres --jobs $(JOBS)
	bin/holdfast-chaos chaos servers --store sqlite --seconds $(SECONDS)
	bin/holdfast-chaos chaos servers --store postgres --servers 2 --seconds $(SECONDS)
	bin/holdfast-chaos chaos overload --seconds 60
	$(GO) test -timeout 30m -count 1 -v ./internal/chaos -run 'TestEveryEventIsDelivered|TestTwentySchedulers|TestAGroupWhose|TestAReaderThatStops' -args -chaos.events $(EVENTS)

mutants: postgres ## apply known defects one at a time, and check that the tests find each
	$(GO) run ./internal/mutants

powerloss: ## simulate a power loss at 200 moments and check for lost jobs
	$(GO) run ./internal/chaos/powerloss

# Finds the PostgreSQL programs that the tests start, or installs them, or prints what is missing.
postgres:
	@$(GO) run ./internal/pgtest/ensure

# Finds the other programs that the tests run (Python and Node for workers, promtool for rules), or installs them, or prints what is missing.
programs:
	@$(GO) run ./internal/testprograms/ensure

# Builds without a C compiler for every supported system.
cross:
	@for system in linux darwin windows; do \
		echo "build for $$system"; \
		CGO_ENABLED=0 GOOS=$$system $(GO) build ./... || exit 1; \
		(cd apps && CGO_ENABLED=0 GOOS=$$system $(GO) build ./...) || exit 1; \
	done

# Only the race detector needs a C compiler.
compiler:
	@if command -v "$${CC:-gcc}" >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing gcc for the race detector, once"; \
		{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends gcc libc6-dev; } >/dev/null; \
	else \
		echo "the race detector needs a C compiler: install gcc (Debian: apt-get install gcc libc6-dev), or set CC" >&2; exit 1; \
	fi
