# Each target sets up what it needs; `make` alone lists them.

# One setting for all builds: the operator, the tests and the local control plane share the Go build cache.
export CGO_ENABLED := 0

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c

VERSION        ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
IMAGE          ?= quell-manager:latest
CONTAINER_TOOL ?= docker
KUBECTL        ?= kubectl

# Tools are built once into the user's cache, under a name that changes with their pinned modules and the Go version.
tool_dir       = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quell/tools-$(shell (go version; cat test/tools/$(1)/*) | cksum | cut -d' ' -f1)
LINT           := $(call tool_dir,lint)/golangci-lint
CONTROLLER_GEN := $(call tool_dir,gen)/controller-gen
LICENCE_CHECK  := $(call tool_dir,licences)/licences
# config/prometheus tests its alert rules with it.
export PROMTOOL := $(or $(shell command -v promtool),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quell/promtool)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## start a local Kubernetes with the operator and a sample App; CLUSTER=current takes kubectl's current context
	@go build -o bin/test-run ./test/run
	@exec bin/test-run $(if $(CLUSTER),--cluster=$(CLUSTER))

.PHONY: storm
storm: ## count what an operator writes that stamps its status on every reconcile, and what Quell writes, in four minutes
	go run ./test/naive/compare

.PHONY: build
build: ## build the programs under cmd/ into bin/
	go build -ldflags '-X main.version=$(VERSION)' -o bin/ ./cmd/manager ./cmd/kubectl-quell

.PHONY: test
test: test-unit test-integration ## run all tests

.PHONY: test-unit
test-unit: ## run the tests that need no API server
	go test $$(go list ./... | grep -v /quell/test/)

.PHONY: test-integration
test-integration: ## run the suites against a real API server (its first build takes about ten minutes)
	go run ./test/localcluster/cmd/localcluster build
	go run github.com/onsi/ginkgo/v2/ginkgo -procs 3 -timeout 60m -succinct ./test/integration/app & app=$$!; \
	go test -count 1 -p 3 -timeout 60m $$(go list ./test/... | grep -v /integration/app$$) & others=$$!; \
	ok=0; wait $$app || ok=1; wait $$others || ok=1; exit $$ok

.PHONY: test-race
RACE ?= ./controller/... ./test/quiescence ./test/integration/...
test-race: ## run units and suites, or the packages RACE, with the race detector; needs a C compiler; an hour on two cores
	go run ./test/localcluster/cmd/localcluster build
	CGO_ENABLED=1 go test -race -count 1 -p 2 -timeout 60m $(RACE)

.PHONY: fuzz
FUZZTIME ?= 1m
fuzz: ## run each fuzz target for FUZZTIME; what it finds is kept below the package's testdata/fuzz
	@for pkg in $$(grep -rl --include '*_test.go' '^func Fuzz' api cmd controller test | xargs -n 1 dirname | sort -u); do \
		for target in $$(go test -list '^Fuzz' "./$$pkg" | grep '^Fuzz'); do \
			echo "==> $$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "./$$pkg"; \
		done; \
	done

.PHONY: cover
COVER ?= ./controller/... ./test/integration/...
cover: ## tell how much of each package in controller/ units and suites, or the packages COVER, reach; bin/cover.html shows the lines
	@rm -rf bin/cover; mkdir -p bin/cover
	go test -count 1 -p 4 -timeout 60m -cover -coverpkg ./controller/... $(COVER) -args -test.gocoverdir=$$PWD/bin/cover >bin/cover.log || { cat bin/cover.log; exit 1; }
	@go tool covdata textfmt -i bin/cover -o bin/cover.out; go tool cover -html bin/cover.out -o bin/cover.html
	@go tool covdata percent -i bin/cover

.PHONY: lint
lint: $(LINT) ## run golangci-lint with the Kubernetes API linters; FIX=1 repairs what it can
	$(LINT) run $(if $(FIX),--fix) ./...

.PHONY: verify
verify: verify-generated verify-modules verify-format verify-alerts verify-licences ## check that generated files, go.mod files, format, alerts and licences are right

.PHONY: verify-generated
verify-generated: $(CONTROLLER_GEN)
	@copy=$$(mktemp -d); trap 'rm -rf "$$copy"' EXIT; \
	cp -R go.mod go.sum api controller "$$copy"; \
	find "$$copy/api" -name 'zz_generated*' -delete; \
	(cd "$$copy"; $(GENERATE)); \
	for made in api applyconfig config/crd config/rbac/role.yaml; do \
		diff -ru -x Kustomization "$$made" "$$copy/$$made" || { echo "$$made is stale: run make generate, and remove what it no longer makes"; exit 1; }; \
	done

.PHONY: verify-modules
verify-modules:
	@for mod in $$(find . -name go.mod); do \
		go mod tidy -C "$${mod%/*}" -diff >/dev/null || { echo "$$mod is not tidy: run go mod tidy -C $${mod%/*}"; exit 1; }; \
	done

.PHONY: verify-format
verify-format:
	@bad=$$(gofmt -l $(wildcard api applyconfig cmd config controller docs test)); test -z "$$bad" || { echo "run gofmt -w on:"; echo "$$bad"; exit 1; }

.PHONY: verify-alerts
verify-alerts: $(PROMTOOL) ## test the alert rules of config/prometheus, and the check of its queries
	go test -count 1 ./config/prometheus
	go test -C test/tools/monitoring ./...

# What the modules that we and our tests are built from may have: licences that ask nothing of the code that links them.
LICENCES = Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT,MPL-2.0

.PHONY: verify-licences
verify-licences: $(LICENCE_CHECK)
	$(LICENCE_CHECK) $(LICENCES) ./...

.PHONY: vuln
vuln: ## look the code's modules up at vuln.go.dev, which needs the network; no part of make verify
	@root=$$PWD; cd test/tools/vuln; go tool govulncheck -C "$$root" ./...

GENERATE = $(CONTROLLER_GEN) object crd:maxDescLen=200 applyconfiguration paths=./api/... output:crd:dir=config/crd; \
	$(CONTROLLER_GEN) rbac:roleName=quell-manager paths=./controller/... output:rbac:dir=config/rbac

.PHONY: generate
generate: $(CONTROLLER_GEN) ## generate deep copies, apply configurations, CRDs and the manager's ClusterRole
	$(GENERATE)

.PHONY: docs
docs: ## write docs/kubectl-quell.md from the commands' help
	go run ./cmd/kubectl-quell/internal/docs > docs/kubectl-quell.md

PLATFORMS ?= linux_amd64 linux_arm64 darwin_amd64 darwin_arm64 windows_amd64 windows_arm64

# The archives are the same whoever builds them: fixed order, owner and time.
.PHONY: release-snapshot
release-snapshot: ## build kubectl-quell for all PLATFORMS, with its krew manifest, into bin/release
	@rm -rf bin/release; mkdir -p bin/release
	@sums='s|@VERSION@|$(VERSION)|'; \
	for platform in $(PLATFORMS); do \
		os=$${platform%_*}; arch=$${platform#*_}; out=bin/release/$$platform; suffix=$$([[ $$os != windows ]] || echo .exe); \
		echo "building $$platform"; \
		GOOS=$$os GOARCH=$$arch go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o "$$out/kubectl-quell$$suffix" ./cmd/kubectl-quell; \
		cp LICENSE "$$out"; \
		tar -C "$$out" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - . | gzip -n > "bin/release/kubectl-quell_$$platform.tar.gz"; \
		sums+="; s|@$$platform@|$$(sha256sum "bin/release/kubectl-quell_$$platform.tar.gz" | cut -d' ' -f1)|"; \
	done; \
	sed "1d; $$sums" cmd/kubectl-quell/krew.yaml > bin/release/quell.yaml

.PHONY: image
image: ## build the operator's container image, named by IMAGE
	@$(CONTAINER_TOOL) version >/dev/null || { echo "$(CONTAINER_TOOL) does not answer: start it, or name another with CONTAINER_TOOL=podman or buildah"; exit 1; }
	@echo "building the program, with no path of this machine in it: everything is compiled anew, once, for some minutes"
	GOOS=linux go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/image/manager ./cmd/manager
	$(CONTAINER_TOOL) build --platform linux/$$(go env GOARCH) -t $(IMAGE) .

.PHONY: install
install: ## install the operator, image IMAGE, into kubectl's current context
	$(KUBECTL) kustomize config/default | sed 's|quell-manager:latest|$(IMAGE)|' | $(KUBECTL) apply --server-side -f -

.PHONY: uninstall
uninstall: ## remove the operator, its CRDs and with them every App from kubectl's current context
	$(KUBECTL) delete --ignore-not-found -k config/default

.PHONY: clean
clean: ## remove what was built in the tree
	rm -rf bin

# Built beside its final name, so that an interrupted build is never taken for a tool.
$(LINT):
	@echo "building golangci-lint, once, in about a minute"
	@go build -C test/tools/lint -o $@.$$$$ . && mv $@.$$$$ $@

$(CONTROLLER_GEN):
	@echo "building controller-gen, once"
	@go build -C test/tools/gen -o $@.$$$$ sigs.k8s.io/controller-tools/cmd/controller-gen && mv $@.$$$$ $@

$(LICENCE_CHECK):
	@echo "building the licence check, once"
	@go build -C test/tools/licences -o $@.$$$$ . && mv $@.$$$$ $@

# Debian's package is unpacked, not installed: its installation would start a Prometheus.
$(PROMTOOL):
	@command -v apt-get >/dev/null || { echo "promtool is missing: install Prometheus and put its promtool into PATH, or set PROMTOOL"; exit 1; }
	@echo "fetching promtool, once, from Debian's package prometheus"
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; cd "$$dir"; fetch="apt-get -qq -o APT::Sandbox::User=root download prometheus"; \
	$$fetch || { apt-get -qq update && $$fetch; } || { echo "promtool is missing: run apt-get install prometheus as root"; exit 1; }; \
	mkdir -p $(@D); dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xO ./usr/bin/promtool > $@.$$$$; chmod +x $@.$$$$; mv $@.$$$$ $@
