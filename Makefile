# Bare `make` prints the targets.

# Every directory with a go.mod: `go test ./...` passes over nested modules in silence. `make modules` compares.
MODULES := tools tools/etcd bench . store/etcdstore

# Limit of one package's tests. The whole of it takes a few minutes on two cores.
TIMEOUT ?= 15m
FUZZTIME ?= 30s

LIBRARIES := ./store/... ./schedule/... ./election/... ./scheduler/...
LINTER := go tool -modfile=$(CURDIR)/tools/go.mod golangci-lint

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup modules test lint fmt tidy cross fuzz-seeds fuzz mutants cover demo bench bench-peers soak redlock-long table sim wirefaults histories redlock-sim

help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Shell function `need COMMAND PACKAGES`: installs the packages when the command is missing and this user may.
define need
need() { \
	command -v "$$1" >/dev/null && return; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "$$1 is missing: installing $$2"; \
		export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1; \
		apt-get -qq update && apt-get -qqy install --no-install-recommends $$2 >/dev/null && command -v "$$1" >/dev/null && return; \
		echo "$$1 could not be installed" >&2; \
	fi; \
	echo "$$1 is missing; install it with: sudo apt-get install --no-install-recommends $$2" >&2; \
	exit 1; \
}
endef

setup: ## install what the tests need (redis-server, gcc, zookeeper; etcd is built), or say how
	@$(need); need redis-server redis-server; need gcc "gcc libc6-dev"; need /usr/share/zookeeper/bin/zkServer.sh zookeeper
	@go tool -modfile=tools/etcd/go.mod -n go.etcd.io/etcd/server/v3 >/dev/null

modules: ## fail when a directory with a go.mod is not on the list MODULES
	@listed=$$(printf '%s\n' $(MODULES) | sort); \
	found=$$(git ls-files --cached --others --exclude-standard -- go.mod '*/go.mod' | \
		while read -r f; do [ ! -e "$$f" ] || dirname "$$f"; done | sort); \
	if [ "$$listed" != "$$found" ]; then \
		echo "the list MODULES of the Makefile (<) and the directories with a go.mod (>) differ:" >&2; \
		diff <(echo "$$listed") <(echo "$$found") >&2 || true; exit 1; \
	fi

test: setup modules ## every test of every module, with the race detector
	@failed=; for m in $(MODULES); do \
		echo "== go test -race ./... in $$m"; \
		go -C $$m test -race -timeout $(TIMEOUT) ./... || failed="$$failed $$m"; \
	done; [ -z "$$failed" ] || { echo "tests failed in:$$failed" >&2; exit 1; }

lint: modules ## gofmt, vet, fix, tidy, golangci-lint (staticcheck, import direction, ...)
	@failed=; bad() { failed="$$failed $$1"; }; \
	out=$$(gofmt -l .); [ -z "$$out" ] || { echo "gofmt -w is needed on:"; echo "$$out"; bad gofmt; }; \
	for m in $(MODULES); do \
		echo "== vet, fix, tidy and golangci-lint in $$m"; \
		go -C $$m vet ./... || bad "$$m:vet"; \
		go -C $$m fix -diff ./... || bad "$$m:fix"; \
		go -C $$m mod tidy -diff || bad "$$m:tidy"; \
		(cd $$m && $(LINTER) run --config $(CURDIR)/.golangci.yml ./...) || bad "$$m:golangci-lint"; \
	done; [ -z "$$failed" ] || { echo "lint failed:$$failed (make fmt and make tidy mend what they can)" >&2; exit 1; }

fmt: ## rewrite the source as gofmt and go fix want it
	@gofmt -w .
	@for m in $(MODULES); do go -C $$m fix ./...; done

tidy: ## go mod tidy in every module, this one first: the others depend on it
	@for m in . $(filter-out .,$(MODULES)); do go -C $$m mod tidy; done

cross: ## compile for macOS, and the libraries for Windows
	@echo "== darwin: everything"; for m in . store/etcdstore; do GOOS=darwin CGO_ENABLED=0 go -C $$m build ./...; done
	@echo "== windows: $(LIBRARIES)"; GOOS=windows CGO_ENABLED=0 go build $(LIBRARIES); GOOS=windows CGO_ENABLED=0 go -C store/etcdstore build .

fuzz-seeds: ## run the committed seeds of all fuzz targets
	@go test -run '^Fuzz' ./...

fuzz: ## run each fuzz target for FUZZTIME (30s)
	@go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... | while read -r p; do \
		{ go test -list '^Fuzz' "$$p" </dev/null | grep '^Fuzz' || true; } | while read -r f; do \
			echo "== $$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) "$$p" </dev/null; \
		done; \
	done

mutants: setup ## build small faults into the code, one at a time: a test must fail on each
	@go test -v -count=1 -timeout 90m ./internal/mutants -run '^TestMutants$$' -mutants.run .

cover: ## test coverage by function, in cover.out
	@go test -coverpkg=./... -coverprofile=cover.out ./... && go tool cover -func=cover.out | tail -n 1

demo: ## three replicas, an every-second job, and a leader that is killed, frozen and asked to leave
	@go run ./cmd/singleton demo

bench: ## the benchmarks
	@go -C bench test -run '^$$' -bench . -benchmem ./...

FOR ?= 5m
SEEDS ?= 200
FIRST ?= 1

ON ?= redis

soak: setup ## real processes on a real store under six kinds of faults, FOR (5m) each, ON redis, sentinels, cluster, zookeeper, redlock or etcd
	@if [ "$(ON)" = etcd ]; then go -C store/etcdstore test ./cmd/singleton-etcd -v -run Soak -each -for $(FOR) -parallel 2 -timeout 6h; \
	else go test ./internal/soak -v -for $(FOR) -on $(ON) -parallel 2 -timeout 6h; fi

TIMES ?= 5

table: setup ## which promise survives what, as in docs/stores.md, measured ON redis, sentinels, cluster, redlock, zookeeper, etcd or all, each fault TIMES (5)
	@on="$(if $(filter all,$(ON)),. store/etcdstore,$(if $(filter etcd%,$(ON)),store/etcdstore,.))"; for m in $$on; do \
		go -C $$m test ./internal/table -v -count=1 -run '^TestTable$$' -table.on $(ON) -table.times $(TIMES) -parallel 5 -timeout 6h || exit 1; \
	done

sim: ## ten virtual minutes of random faults for each of SEEDS (200) seeds from FIRST (1), in virtual time
	@go test ./internal/sim -v -count=1 -run '^TestSimulation$$' -sim.first $(FIRST) -sim.seeds $(SEEDS) $(SIM) -timeout 24h

wirefaults: ## the same over a client's connections that break, for SEEDS (200) seeds from FIRST (1)
	@go test ./internal/wirefaults -v -count=1 -wire.first $(FIRST) -wire.seeds $(SEEDS) -timeout 24h

GRANTS ?= 1000000

redlock-sim: ## GRANTS (1000000) leases over model nodes that fail, and SEEDS (200) seeds with a ledger and with schedulers from FIRST (1)
	@go test ./store/redlock -v -count=1 -run '^TestE3TokensGrowOverManyGrants$$' -sim.grants $(GRANTS) -timeout 24h
	@go test ./store/redlock -v -count=1 -run '^TestSimulation' -sim.first $(FIRST) -sim.seeds $(SEEDS) -sim.for 10m -timeout 24h

histories: setup ## recorded histories of a real Redis under faults, judged by a model, for SEEDS (200) seeds
	@go test ./internal/histories -run Fenced -seeds $(SEEDS) -for 20s -parallel 12 -timeout 6h

LONG ?= 2m

redlock-long: setup ## five independent Redis servers, two of which break in all ways, alone and mixed: LONG (2m) each, about 15 minutes
	@go test ./internal/histories -v -count=1 -run Nodes -seeds 24 -for 20s -parallel 6 -timeout 6h
	@go test ./internal/soak -v -count=1 -run '^TestSoak$$' -for $(LONG) -on redlock -parallel 4 -timeout 6h
	@go test -tags long . -v -count=1 -run 'Minority|MajorityIsGone|B20' -timeout 6h

bench-peers: setup ## lost and doubled ticks of the usual set-ups, measured (about 15 minutes)
	@go -C bench run ./peers
