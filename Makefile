# All tasks of this repository, for people and for CI. Each target sets up what it needs.
# A line "name: ## what it does" is a target for people; `make` without a target lists them.

GO       ?= go
SECONDS  ?= 120
JOBS     ?= 50000
EVENTS   ?= 1000000
# Tests that simulate hours and thousands of jobs in virtual time. The race detector itself crashes in them after minutes (a SIGSEGV in its
# runtime), so they run without it.
STORIES  = engine/breaker_test.go engine/breaker_state_test.go engine/policy_test.go engine/redrive_test.go engine/retention_test.go engine/schedule_test.go engine/group_test.go engine/duty_test.go engine/outage_test.go engine/throttle_test.go
LONG     = TestOtherJobsCostNothing|TestTwoHundredKindsInOneQueueCostLikeOne|TestTheStoreKeepsTheLawsBehindATransactionPooler|TestTheStoreDoesWhatTheModelDoesBehindATransactionPooler|TestFiguresReadABoundedPartOfTheStore|TestALongTimeLimit|TestThousandsOfMembers|TestASnoozeCostsNothing|TestWhicheverCallFails$(shell sed -n 's/^func \(Test[A-Za-z0-9]*\).*/|\1/p' $(STORIES) | tr -d '\n')
PACKAGES ?= ./...
# With all packages, those whose tests take longest begin first.
FIRST    = $(if $(filter ./...,$(PACKAGES)),./store/postgres ./store/sqlite ./engine ./server)
# Packages that also run under the race detector: those with concurrent code. All packages would take too long on two cores.
RACE     ?= . ./ops/... ./notify/sse ./notify/webhook
# The tests of store/postgres in which goroutines and processes meet. `make soak` runs all tests of that package under the race detector.
RACING   = TestTheStoreKeepsTheLaws/^(enqueue|claim|lease|settle|await|race)$$|TestManyProcesses|TestCutConnections|TestSessionsCut|TestABlockedCall|TestRenewals|TestOneBadCall|TestOtherProcesses|TestAProcessThat|TestCallersThatStopWaiting|TestAnEngineWorksBehind
# Tests that run the same code as others, on another store: they run without the race detector.
TWICE    = TestOperatorOnPostgreSQL
# SQLite itself, translated from C, is not instrumented: it is not the code under test, and with it the race detector needs nine times as long.
RACEFLAGS = -race -gcflags=modernc.org/sqlite/lib=-race=false
# The modules of this repository. Only users of their packages have their dependencies. Those in internal are for tests only.
MODULES  = . cmd telemetry notify/mail notify/nats examples/shop internal/interop internal/browsertest apps
SHIPPED  = $(filter-out internal/%,$(MODULES))
# Modules whose tests read files of another module: the test cache does not see a change of those files, so these tests always run.
UNCACHED = telemetry internal/interop
# The modules of the benchmark: contenders may need different versions of the same dependency.
BENCHES  = bench bench/measure bench/riversqlite bench/asynq bench/goqite bench/backlite

# No cgo, so that one build serves all checks. Only the race detector needs cgo.
export CGO_ENABLED = 0

STATICCHECK = $(GO) tool -modfile=$(CURDIR)/tools/go.mod staticcheck
GOVULNCHECK = $(GO) tool -modfile=$(CURDIR)/tools/go.mod govulncheck

.DEFAULT_GOAL := help
.PHONY: help run convert fetchbox screenshot watermark bench-watermark proto tag release test soak steps lint screenshots bench bench-fetchbox bench-screenshot load chaos mutants powerloss format postgres programs compiler cross race vulncheck

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## serve a demo on a temporary store, with an outage in progress: open the printed console address in a browser
	@$(GO) build -C cmd -o ../bin/ ./holdfast
	@bin/holdfast serve --demo

convert: ## run the converter, an application on Holdfast: PDF to XML, in a browser at http://127.0.0.1:4750
	@cd apps && $(GO) build -o ../bin/ ./convert
	@bin/convert

fetchbox: ## run FetchBox, an application on Holdfast: fetch resources through proxies into object storage; its page is at http://127.0.0.1:4760
	@cd apps && $(GO) build -o ../bin/ ./fetchbox
	@bin/fetchbox

screenshot: ## run the screenshot service, an application on Holdfast: pictures of pages by Chromium, with credits and retries; its page is at http://127.0.0.1:4770
	@$(GO) run ./internal/testprograms/ensure chromium
	@cd apps && $(GO) build -o ../bin/ ./screenshot
	@bin/screenshot

watermark: ## run Watermark, an application on Holdfast: a marked copy of a video for each recipient; its page is at http://127.0.0.1:4780
	@$(GO) run ./internal/testprograms/ensure ffmpeg
	@cd apps && $(GO) build -o ../bin/ ./watermark
	@bin/watermark

# STEPS are the parts of `make test`, and of `make soak`. Two run at the same time; the long ones begin first.
STEPS    = 'packages: $(GO) test -vet=off -p 2 -timeout $(TIMEOUT) $(FIRST) $(PACKAGES)' \
	$(foreach module,$(filter-out .,$(MODULES)),'$(module): $(GO) test -C $(module) -vet=off -timeout $(TIMEOUT) $(if $(filter $(module),$(UNCACHED)),-count 1) ./...') \
	'race: $(MAKE) --no-print-directory race' \
	'lint: $(MAKE) --no-print-directory lint' \
	'cross: $(MAKE) --no-print-directory cross' \
	'vulncheck: $(MAKE) --no-print-directory vulncheck' \
	'bench: cd bench && $(GO) test . && cd measure && $(GO) test .'
TIMEOUT  = 60m
# The major versions of PostgreSQL on which `make soak` runs the tests of store/postgres; internal/pgtest/with gets their programs.
VERSIONS = 14 15 16 17 18

test: postgres programs compiler ## run all checks: style, static analysis, tests on SQLite and PostgreSQL, race detector, some seconds of chaos; about 25 minutes
	@$(MAKE) --no-print-directory steps

steps:
	@$(GO) run ./internal/steps -at 2 $(STEPS) $(MORE)

soak: postgres programs compiler ## run the tests of `make test` with larger counts, and those of store/postgres on PostgreSQL 14 to 18 and under the race detector; print what that adds
	@echo "make soak runs make test with these counts:"
	@grep -rhoE 'soak\.Pick\("[^"]*", [0-9_]+, [0-9_]+\)' --include='*.go' . | sed -E 's/soak\.Pick\("([^"]*)", ([0-9_]+), ([0-9_]+)\)/  \1: \3 instead of \2/' | sort
	@echo "  under the race detector: all tests of store/postgres instead of those in which goroutines meet"
	@echo "  on a pool, a database and in a schema of the application: all chapters of the laws instead of a share"
	@echo "  on PostgreSQL $(VERSIONS): all tests of store/postgres and store/anystore, with the counts of make test"
	@TEST_SOAK=1 $(MAKE) --no-print-directory steps TIMEOUT=90m RACE='$(RACE) ./store/postgres/...' RACING= \
		MORE="$(foreach version,$(VERSIONS),'PostgreSQL $(version): TEST_SOAK= $(GO) run ./internal/pgtest/with $(version) $(GO) test -timeout 90m ./store/postgres ./store/anystore')"

lint: ## run gofmt, go vet and staticcheck, and check the commands in docs
	@unformatted="$$(gofmt -l . )"; if [ -n "$$unformatted" ]; then \
		echo "these files are not formatted; run 'make format':"; echo "$$unformatted"; exit 1; fi
	@for module in $(MODULES); do \
		echo "vet and staticcheck $$module"; (cd $$module && $(GO) vet -tags chaos ./... && $(STATICCHECK) -tags chaos ./...) || exit 1; \
	done
	@for module in $(BENCHES); do \
		echo "vet $$module"; (cd $$module && $(GO) vet ./...) || exit 1; \
	done
# The test cache of the module cmd does not see a change of docs.
	@$(GO) test -C cmd -count 1 ./holdfast -run TestThePagesShowCommandsThatExist

vulncheck: ## find known vulnerabilities in called code with govulncheck; if its database cannot be reached, print that and continue
	@for module in $(SHIPPED); do \
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
	@CGO_ENABLED=1 $(GO) test $(RACEFLAGS) -timeout $(TIMEOUT) -skip '$(LONG)|$(TWICE)' $(RACE)
ifneq ($(RACING),)
	@CGO_ENABLED=1 $(GO) test $(RACEFLAGS) -timeout $(TIMEOUT) -run '$(RACING)' -skip '$(LONG)' ./store/postgres
endif
	@CGO_ENABLED=1 $(GO) test -C notify/mail $(RACEFLAGS) -timeout $(TIMEOUT) ./...
	@CGO_ENABLED=1 $(GO) test -C notify/nats $(RACEFLAGS) -timeout $(TIMEOUT) ./...
	@CGO_ENABLED=1 $(GO) test -C apps $(RACEFLAGS) -timeout $(TIMEOUT) -run 'Proxy|Proxies|Host|Owners|Killed|Excess|Writers' ./fetchbox/proxy ./fetchbox/spool ./fetchbox/fetch
	@$(GO) run ./internal/race -timeout $(TIMEOUT) -skip '$(LONG)' ./engine

bench: postgres ## compare with River, Asynq and others, about 65 minutes; QUICK=1 for a first look
	cd bench && $(GO) run .

load: ## run the converter under load, 200 concurrent uploads and 5,000 conversions; print speed and memory
	cd apps && $(GO) test -timeout 60m -count 1 -v ./convert -run TestUnderLoad -args -load.uploads 200 -load.jobs 5000

bench-fetchbox: programs ## transfer files with FetchBox, rclone and Scrapy into a real S3 server, about 30 minutes; SMALL=2000 of 256 KiB, LARGE=20 of 1 GiB
	cd apps && $(GO) test -timeout 3h -count 1 -v ./fetchbox/bench -args -bench.peers -bench.rounds 3 -bench.small $(SMALL) -bench.large $(LARGE) -bench.megabytes 1024

bench-screenshot: ## take pictures with the screenshot service, puppeteer-cluster and Gotenberg, compare them and judge the targets, about an hour; ROUNDS=1 PAGES=4 for a first look
	@$(GO) run ./internal/testprograms/ensure chromium npm node
	cd apps && $(GO) test -timeout 3h -count 1 -v ./screenshot/bench -args -bench.peers -bench.rounds $(ROUNDS) -bench.pages $(PAGES) -bench.times 3

bench-watermark: ## measure what the invisible mark withstands and costs, on eight clips: hours; RECIPIENTS=1 for a first look
	@$(GO) run ./internal/testprograms/ensure ffmpeg
	cd apps && $(GO) test -timeout 24h -count 1 -v ./watermark/bench -args -bench.run -bench.recipients $(RECIPIENTS)

RECIPIENTS = 10
SMALL    = 2000
LARGE    = 20
ROUNDS   = 5
PAGES    = 20

screenshots: programs ## take screenshots of the console in a real browser for docs/console
	cd internal/browsertest && $(GO) test -count 1 ./console -run TestPictures -args -pictures $(CURDIR)/docs/console

chaos: postgres ## kill, freeze and disconnect real processes on both stores; SECONDS=120 each, redrive JOBS=50000 dead letters, follow EVENTS=1000000
	@$(GO) build -C cmd -tags chaos -o ../bin/holdfast-chaos ./holdfast
	bin/holdfast-chaos chaos --store sqlite --seconds $(SECONDS)
	bin/holdfast-chaos chaos --store postgres --seconds $(SECONDS)
	bin/holdfast-chaos chaos redrive --store sqlite --jobs $(JOBS)
	bin/holdfast-chaos chaos redrive --store postgres --jobs $(JOBS)
	bin/holdfast-chaos chaos servers --store sqlite --seconds $(SECONDS)
	bin/holdfast-chaos chaos servers --store postgres --servers 2 --seconds $(SECONDS)
	bin/holdfast-chaos chaos overload --seconds 60
	$(GO) test -C cmd -timeout 30m -count 1 -v ./internal/chaos -run 'TestEveryEventIsDelivered|TestTwentySchedulers|TestAGroupWhose|TestAReaderThatStops' -args -chaos.events $(EVENTS)

mutants: postgres ## apply known defects one at a time, and check that the tests find each
	$(GO) run ./internal/mutants

powerloss: ## simulate a power loss at 200 moments and check for lost jobs
	$(GO) run -C cmd ./internal/chaos/powerloss

proto: ## generate the Go code of the dead letters of FetchBox from its .proto file; needs protoc (Debian: apt-get install protobuf-compiler)
	@command -v protoc >/dev/null || { echo "make proto needs protoc: install it (Debian: apt-get install protobuf-compiler; macOS: brew install protobuf)" >&2; exit 1; }
	@cd apps && $(GO) build -o ../bin/ google.golang.org/protobuf/cmd/protoc-gen-go
	@cd apps/fetchbox/deadletter/pb && protoc --plugin=$(CURDIR)/bin/protoc-gen-go --go_out=. --go_opt=paths=source_relative deadletter.proto

tag: ## make the release commit of VERSION=v0.1.0 and its tags; docs/releasing.md has the steps of a release
	@$(RELEASE) tag $(VERSION)

release: ## build the files of the release that is checked out, into the folder dist
	@$(RELEASE) build

# All releases are built by one version of Go, so that the same commit gives the same files.
RELEASE  = GOTOOLCHAIN=$(shell sed -n 's/^const toolchain = "\(.*\)"/\1/p' internal/release/main.go) $(GO) run ./internal/release

# Finds the PostgreSQL programs that the tests start, or installs them, or prints what is missing.
postgres:
	@$(GO) run ./internal/pgtest/ensure

# Finds the other programs that the tests run (Python and Node for workers, promtool for rules), or installs them, or prints what is missing.
programs:
	@$(GO) run ./internal/testprograms/ensure

# Compiles without a C compiler for every supported system. Linux is left out where the tests run on it: they compile the same packages.
cross:
	@for system in $(filter-out $(shell $(GO) env GOOS),linux darwin windows); do for module in $(SHIPPED); do \
		echo "build $$module for $$system"; (cd $$module && GOOS=$$system $(GO) build ./...) || exit 1; \
	done; done

# Only the race detector needs a C compiler.
compiler:
	@if command -v "$${CC:-gcc}" >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing gcc for the race detector, once"; \
		{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends gcc libc6-dev; } >/dev/null; \
	else \
		echo "the race detector needs a C compiler: install gcc (Debian: apt-get install gcc libc6-dev), or set CC" >&2; exit 1; \
	fi
