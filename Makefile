# make run    start the server on loopback and run the demo agent once, visibly
# make test   everything: lint, unit, race, crash, real clients and servers
# make help   the rest
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
GO ?= go
BIN := bin/agentd
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
LDFLAGS := -s -w
PLATFORMS := linux/amd64 linux/arm64 darwin/arm64 windows/amd64

# Packages whose code runs concurrently: these are tested under the race detector.
RACE := . ./client/... ./event/... ./internal/cli/... ./internal/engine/... ./internal/guard/... ./internal/keys/... ./internal/logs/... \
	./internal/mcp/... ./internal/redact/... ./internal/server/... ./internal/telemetry/... \
	./internal/sim/... ./internal/store/... ./internal/workspace/... ./model/... ./tool/...

# Compiled without cgo, as the binary is, everything but race shares what build has compiled: net has cgo in it, and so
# with it SQLite and the SDKs, which are most of the work, would be compiled once more.
lint unit rest crash soak soak-short interop temporal cluster test-cluster deploy-check: export CGO_ENABLED := 0

.PHONY: help go platforms run build dist test lint unit rest race crash interop temporal cluster test-cluster deploy-check soak soak-short bench fuzz clean tools

help: ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

build: go ## build bin/agentd, static
	CGO_ENABLED=0 $(GO) build -o $(BIN) ./cmd/agentd

run: build ## start the server and run the demo agent once, visibly (ADDR=127.0.0.1:7071 for another address)
	@$(BIN) serve$(if $(ADDR), --addr $(ADDR)) --demo "Have a look around this repository"

dist: go ## static binaries of every platform in dist/
	@for p in $(PLATFORMS); do \
	  out=dist/agentd-$${p%/*}-$${p#*/}; [ $${p%/*} = windows ] && out=$$out.exe; echo "$$out"; \
	  CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $$out ./cmd/agentd; done

test: tools build lint rest race crash soak-short interop temporal cluster deploy-check platforms ## everything
	@echo "make test: all parts passed"

lint: tools ## gofmt, vet, staticcheck
	@bad=$$(gofmt -l . | grep -v node_modules || true); [ -z "$$bad" ] || { echo "not gofmt-clean:"; echo "$$bad"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags nats .
	$(GO) run $(STATICCHECK) ./...

unit: tools ## all packages of the module but crash loop, soak and executors
	$(GO) test -timeout 600s $$($(GO) list ./... | grep -vE '/test/(crash|soak|executors|cluster|image)')

rest: tools ## the packages that race does not run; the engine once more as one of several nodes
	$(GO) test -timeout 600s $$($(GO) list ./... | grep -vE '/test/(crash|soak|executors|cluster|image)' | grep -vxF "$$($(GO) list $(RACE))")
	AGENTD_TEST_CLUSTER=1 $(GO) test -timeout 600s -skip Postgres ./internal/engine
	$(GO) test -tags nats -timeout 600s -run NATS .

# SQLite and the libc below it are C in Go, which is not ours to check and takes ten times as long when it is: without it
# the suite takes a quarter of the time, with every test in it at the same size. All of our code and of its other
# dependencies is checked.
race: tools ## the concurrent packages under the race detector
	CGO_ENABLED=1 $(GO) test -race -gcflags='modernc.org/...=-race=false' -timeout 1800s $(RACE)

crash: tools ## kill -9 of the real binary, 200 times (AGENTD_KILLS=N), and of several on one database
	$(GO) test -timeout 900s -count=1 ./test/crash/...

interop: tools ## real MCP servers, real clients, conformance kits
	./test/npm/install.sh
	cd test/interop && $(GO) vet ./... && $(GO) test -timeout 900s -count=1 ./...

# That a binary compiles and links needs no optimised code and no debugging information: a third less work.
platforms: ## compiles and links for the other systems
	@for p in linux/arm64 darwin/arm64 windows/amd64; do echo "build $$p"; \
	  CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -gcflags='all=-N -l -dwarf=false' -o /dev/null ./cmd/agentd; done

# The server's module has some two hundred dependencies of its own. From nothing it is a quarter of an hour of one
# processor, most of it compiling them once; then seconds.
temporal: tools ## executors on a real Temporal server: conformance, kills, cuts (builds the server once)
	@mkdir -p .cache
	cd test/temporal && $(GO) vet ./... && $(GO) build -o ../../.cache/temporaldev ./cmd/temporaldev
	$(GO) test -timeout 900s -count=1 -parallel 4 ./test/executors/...
	AGENTD_NODE_ROUNDS=$${AGENTD_NODE_ROUNDS:-10} $(GO) test -timeout 900s -count=1 -tags temporal -run Temporal ./test/crash

# The long form needs root and iproute2 for its network namespaces, and a machine of its own: what is interrupted goes on
# within 10 s there, and within 30 s in the short form.
cluster: tools ## several processes on PostgreSQL and Temporal: each kind of death once, under load
	$(GO) test -timeout 900s -count=1 -v ./test/cluster

test-cluster: tools ## the same with 200 runs at a time and each death ten times, and workers that are cut off (root, Linux)
	AGENTD_CLUSTER_FAULTS=$${AGENTD_CLUSTER_FAULTS:-10} AGENTD_CLUSTER_RUNS=$${AGENTD_CLUSTER_RUNS:-200} $(GO) test -timeout 3h -count=1 -v -parallel 1 -tags netns ./test/cluster

# The readers of these files (Helm, BuildKit, Compose, Prometheus) are a module of their own: three minutes to compile once.
deploy-check: tools build ## what is in deploy: the binary alone in a folder, chart, compose.yaml, Dockerfile, units, alerts
	$(GO) test -timeout 300s -count=1 ./test/image
	cd test/deploy && $(GO) vet ./... && $(GO) test -timeout 300s -count=1 ./...

soak: tools ## half an hour of mixed load and kills (AGENTD_SOAK=DURATION), then kill -9 a thousand times
	AGENTD_SOAK=$${AGENTD_SOAK:-30m} $(GO) test -v -timeout 4h -count=1 ./test/soak/...
	AGENTD_KILLS=1000 $(GO) test -timeout 3600s -count=1 ./test/crash/...

soak-short: tools ## two minutes of the same
	AGENTD_SOAK=2m $(GO) test -timeout 1800s -count=1 ./test/soak/...

bench: tools ## speed, beside a peer in the same run
	./bench/run.sh

fuzz: tools ## each fuzz target for FUZZTIME (default 20s)
	./scripts/fuzz.sh $(or $(FUZZTIME),20s)

go:
	@./scripts/tools.sh go

tools:
	@./scripts/tools.sh

clean: ## remove what was built
	rm -rf bin dist .cache
