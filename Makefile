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
ACTIONLINT     := $(call tool_dir,actionlint)/actionlint
# config/prometheus tests its alert rules with it.
export PROMTOOL := $(or $(shell command -v promtool),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quell/promtool)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## start a local Kubernetes with the operator and a sample App; CLUSTER=current takes kubectl's current context
	@[[ -e bin/test-run ]] || echo "building, once, in some minutes on a fresh machine" >&2
	@go build -o bin/test-run ./test/run
	@exec bin/test-run $(if $(CLUSTER),--cluster=$(CLUSTER))

.PHONY: storm
storm: ## count what an operator writes that stamps its status on every reconcile, and what Quell writes, in four minutes
	go run ./test/naive/compare

.PHONY: demo
demo: ## tell the incident in two minutes: the storm, its name, its cure; leaves bin/demo.html
	go run ./test/demo

.PHONY: bench
bench: ## measure Quell beside the other ways to write status and write docs/benchmarks.md; BENCH=--help lists its parts; three hours in all
	cd test/bench && go run . $(BENCH)

.PHONY: build
build: ## build the programs under cmd/ into bin/
	go build -ldflags '-X main.version=$(VERSION)' -o bin/ ./cmd/manager ./cmd/kubectl-quell

.PHONY: test
test: test-unit test-integration ## run all tests

.PHONY: test-unit
test-unit: ## run the tests that need no API server
	go test $$(go list ./... | grep -v /quell/test/)

.PHONY: test-integration
test-integration: ## run the suites against a real API server (its first build takes 10 to 17 minutes)
	go run ./test/localcluster/cmd/localcluster build
	@$(MAKE) --no-print-directory -k -j 2 test-app test-suites
	go test -C test/bench -count 1 -timeout 60m ./...

# Two processes, each with a cluster of its own. A cached object that is changed in place ends them.
.PHONY: test-app
test-app:
	KUBE_CACHE_MUTATION_DETECTOR=true go run github.com/onsi/ginkgo/v2/ginkgo -procs 2 -timeout 60m -succinct ./test/integration/app

.PHONY: test-suites
test-suites:
	go test -count 1 -p 3 -timeout 60m $$(go list ./test/... | grep -v /integration/app$$)

.PHONY: test-e2e
test-e2e: ## run test/e2e, on a local cluster or on the one of the kubeconfig QUELL_E2E_KUBECONFIG, in which the operator runs
	go test -count 1 -timeout 60m -v ./test/e2e -ginkgo.v

.PHONY: test-e2e-kind
test-e2e-kind: bin/e2e-kind ## run test/e2e in a kind cluster made for it, with the operator in it; needs Docker; E2E=--help tells more
	@bin/e2e-kind test $(E2E)

.PHONY: kind-up
kind-up: bin/e2e-kind ## create a kind cluster with the operator in it
	@bin/e2e-kind up

.PHONY: kind-down
kind-down: bin/e2e-kind ## delete the cluster of kind-up
	@bin/e2e-kind down

.PHONY: bin/e2e-kind
bin/e2e-kind:
	@go build -o $@ ./test/e2e/kind

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
verify: verify-generated verify-modules verify-format verify-docs verify-alerts verify-chart verify-release verify-licences verify-workflows ## check that generated files, go.mod files, format, documents, alerts, the chart, the release, licences and workflows are right

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

.PHONY: verify-docs
verify-docs: ## follow the links of all documents, look up what they name, and compare tables and code with the source
	go test -count 1 ./docs ./cmd/kubectl-quell/internal/docs

.PHONY: verify-alerts
verify-alerts: $(PROMTOOL) ## test the alert rules of config/prometheus, and the check of its queries
	go test -count 1 ./config/prometheus
	go test -C test/tools/monitoring ./...

.PHONY: verify-release
verify-release: ## compare .goreleaser.yaml with goreleaser's own types, release-snapshot and the krew manifest
	go test -C test/tools/release ./...

.PHONY: verify-chart
verify-chart: ## compare the Helm chart with what kustomize makes of config/, and try its values
	go test -C test/tools/chart -count 1 ./...

# What the modules that we and our tests are built from may have: licences that ask nothing of the code that links them.
LICENCES = Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT,MPL-2.0

.PHONY: verify-licences
verify-licences: $(LICENCE_CHECK)
	$(LICENCE_CHECK) $(LICENCES) ./...

.PHONY: verify-workflows
verify-workflows: $(ACTIONLINT)
	$(ACTIONLINT)
	@! grep -nE 'uses: [^#]*@' .github/workflows/*.yaml | grep -vE '@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+$$' || { echo "pin these actions by commit, with the version behind it"; exit 1; }

.PHONY: vuln
vuln: ## look the code's modules up at vuln.go.dev, which needs the network; no part of make verify
	@root=$$PWD; cd test/tools/vuln; go tool govulncheck -C "$$root" ./...

GENERATE = $(CONTROLLER_GEN) object crd:maxDescLen=200 applyconfiguration paths=./api/... output:crd:dir=config/crd; \
	$(CONTROLLER_GEN) rbac:roleName=quell-manager paths=./controller/... output:rbac:dir=config/rbac

.PHONY: generate
generate: $(CONTROLLER_GEN) ## generate deep copies, apply configurations, CRDs, the manager's ClusterRole and the chart's copies of them
	$(GENERATE)
	@$(MAKE) --no-print-directory chart

# What the chart has from config/ is copied, for a chart that is packaged, or fetched by itself, has nothing beside it.
CHART_FILES = $(wildcard $(addprefix config/,crd/*.yaml rbac/*.yaml configroll/*.yaml stormwatch/*.yaml prometheus/*.yaml)) \
	$(addprefix config/,prometheus/dashboard.json prometheus/shard/service.yaml manager/namespace.yaml shard/leader_election.yaml)

.PHONY: chart
chart: ## copy what the Helm chart config/chart has from the rest of config/ into its files/
	@rm -rf config/chart/files; for file in $(CHART_FILES); do \
		copy=config/chart/files/$${file#config/}; mkdir -p "$${copy%/*}"; cp "$$file" "$$copy"; \
	done

.PHONY: docs
docs: ## write docs/kubectl-quell.md from the commands' help
	go run ./cmd/kubectl-quell/internal/docs > docs/kubectl-quell.md

PLATFORMS ?= linux_amd64 linux_arm64 darwin_amd64 darwin_arm64 windows_amd64 windows_arm64
MANAGER_PLATFORMS ?= linux_amd64 linux_arm64

# One tree makes one program, whoever builds it and where: no path, no time, and no state of a checkout but VERSION.
RELEASE_BUILD = go build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)'

# The files are the same whoever builds them: fixed order, owner, mode and time. Helm wants a version of three numbers.
CHART_VERSION = $(or $(shell sed -nE 's/^v?([0-9]+\.[0-9]+\.[0-9]+.*)$$/\1/p' <<<'$(VERSION)'),0.0.0-g$(subst .,-,$(VERSION)))
PACK = tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX

.PHONY: release-snapshot
release-snapshot: ## build what is released, into bin/release: plugin and manager, SBOMs, krew manifest, install.yaml, chart, checksums
	@rm -rf bin/release; mkdir -p bin/release/files; root=$$PWD; \
	for program in $(PLATFORMS:%=kubectl-quell_%) $(MANAGER_PLATFORMS:%=manager_%); do \
		name=$${program%%_*}; platform=$${program#*_}; os=$${platform%_*}; arch=$${platform#*_}; out=bin/release/files/$$program; \
		echo "building $$program"; suffix=$$([[ $$os != windows ]] || echo .exe); \
		GOOS=$$os GOARCH=$$arch $(RELEASE_BUILD) -o "$$out/$$name$$suffix" "./cmd/$$name"; \
		cp LICENSE "$$out"; $(PACK) -C "$$out" -cf - . | gzip -n > "bin/release/$$program.tar.gz"; \
		(cd test/tools/release; go tool cyclonedx-gomod bin -json -noserial -notimestamp -version '$(VERSION)' \
			-output "$$root/bin/release/$$program.cdx.json" "$$root/$$out/$$name$$suffix" 2>"$$root/$$out/sbom.log") || { cat "$$out/sbom.log"; exit 1; }; \
	done
	@sums='s|@VERSION@|$(VERSION)|'; for platform in $(PLATFORMS); do \
		sums+="; s|@$$platform@|$$(sha256sum "bin/release/kubectl-quell_$$platform.tar.gz" | cut -d' ' -f1)|"; \
	done; sed "1d; $$sums" cmd/kubectl-quell/krew.yaml > bin/release/quell.yaml
	@$(MAKE) --no-print-directory build-installer INSTALLER=bin/release/install.yaml
	@cp -R config/chart bin/release/files/quell; sed -i.bak 's|^version: .*|version: $(CHART_VERSION)|; s|^appVersion: .*|appVersion: "$(VERSION)"|' bin/release/files/quell/Chart.yaml
	@rm bin/release/files/quell/Chart.yaml.bak; $(PACK) -C bin/release/files -cf - quell | gzip -n > 'bin/release/quell-$(CHART_VERSION).tgz'
	@rm -r bin/release/files; cd bin/release; sha256sum -- * > checksums.txt

# What the image's layer has as the file's time, for builders that look at it: buildah, and BuildKit from 0.13.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

.PHONY: image
image: ## build the operator's container image, named by IMAGE
	@$(CONTAINER_TOOL) version >/dev/null || { echo "$(CONTAINER_TOOL) does not answer: start it, or name another with CONTAINER_TOOL=podman or buildah"; exit 1; }
	@echo "building the program, with no path of this machine in it: everything is compiled anew, once, for some minutes"
	GOOS=linux $(RELEASE_BUILD) -o bin/image/manager ./cmd/manager
	@TZ=UTC touch -t "$$(TZ=UTC date -d @$(SOURCE_DATE_EPOCH) +%Y%m%d%H%M.%S 2>/dev/null || TZ=UTC date -r $(SOURCE_DATE_EPOCH) +%Y%m%d%H%M.%S)" bin/image/manager
	SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) $(CONTAINER_TOOL) build --platform linux/$$(go env GOARCH) -t $(IMAGE) .

INSTALLER ?= dist/install.yaml

.PHONY: build-installer
build-installer: ## write dist/install.yaml: config/default with the image IMAGE, for kubectl apply --server-side -f
	@mkdir -p "$(dir $(INSTALLER))"
	@to="$$PWD"; [[ "$(INSTALLER)" != /* ]] || to=; cd test/tools/chart; \
	go tool kustomize build ../../../config/default | sed 's|quell-manager:latest|$(IMAGE)|' > "$${to:+$$to/}$(INSTALLER)"

.PHONY: install
install: ## install the operator, image IMAGE, into kubectl's current context
	$(KUBECTL) kustomize config/default | sed 's|quell-manager:latest|$(IMAGE)|' | $(KUBECTL) apply --server-side -f -

.PHONY: uninstall
uninstall: ## remove the operator, its CRDs and with them every App from kubectl's current context
	$(KUBECTL) delete --ignore-not-found -k config/default

.PHONY: clean
clean: ## remove what was built in the tree
	rm -rf bin dist

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

$(ACTIONLINT):
	@echo "building actionlint, once"
	@go build -C test/tools/actionlint -o $@.$$$$ github.com/rhysd/actionlint/cmd/actionlint && mv $@.$$$$ $@

# Debian's package is unpacked, not installed: its installation would start a Prometheus.
$(PROMTOOL):
	@command -v apt-get >/dev/null || { echo "promtool is missing: install Prometheus and put its promtool into PATH, or set PROMTOOL"; exit 1; }
	@echo "fetching promtool, once, from Debian's package prometheus"
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; cd "$$dir"; fetch="apt-get -qq -o APT::Sandbox::User=root download prometheus"; \
	$$fetch || { apt-get -qq update && $$fetch; } || { echo "promtool is missing: run apt-get install prometheus as root"; exit 1; }; \
	mkdir -p $(@D); dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xO ./usr/bin/promtool > $@.$$$$; chmod +x $@.$$$$; mv $@.$$$$ $@
