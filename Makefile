# What there is to run: `make help`.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# How long each fuzz target runs in `make fuzz`.
FUZZTIME ?= 20s
# More flags for tests, such as -run or -v.
TESTFLAGS ?=
# All tests run without go vet, which `make lint` runs: it looks into all that they import as well.
NOVET := -vet=off
# For how long the tests of one package may run; then go test names the test and prints
# the goroutines. Each is below the bound of its part of .ci/run.
TIMEOUT := -timeout 15m
# Tests without daemons collect garbage as seldom as vipgen does, and run one package more at
# once than there are cores, and eight tests of a package, since some wait.
UNIT     := VIPGEN_TESTS=unit GOGC=400
PACKAGES := $(shell expr $$(nproc) + 1)
PARALLEL := -parallel 8
# Live tests: one that fails is run again, alone (internal/tools/retest). REPORT is the file
# that it adds its closing table to; none if it is empty.
REPORT ?=
RETEST := go run ./internal/tools/retest $(if $(REPORT),-report $(abspath $(REPORT)))
LIVE := VIPGEN_TESTS=live $(RETEST)
# Packages whose live tests elect nodes for minutes. Their clusters mostly wait; those of the
# lab's module, with all daemons and clients, take two thirds of a slow core each.
ELECTIONS = $(filter agent/keepalived%,$(WITH_LIVE))
# Packages with measured tests: of the lab's module, and of this one.
MEASURED_LAB := ./bench
MEASURED     := ./cmd/cli
# The packages with live tests, which testkit holds to be all (internal/testkit/live.txt).
WITH_LIVE = $(shell cat internal/testkit/live.txt)
# The packages whose tests are all live, or benchmarks, which testkit checks: `make unit` does not link them.
NOT_UNIT = grep -v -f <(sed 's,.*,/&$$,' internal/testkit/notunit.txt)

# Left out of test-race for the time that they take: whole command lines, of hundreds of
# clusters. Packages that these call have tests of their own.
RACELESS := ./golden ./cmd/cli ./examples ./docs ./internal/words ./internal/tools/...

# No version control facts in what is built: the same source gives the same
# bytes, also from a tree without history.
export GOFLAGS := $(GOFLAGS) -buildvcs=false
# Programs, tests, tools and lint share what is compiled: all without cgo, and none but
# releases with -trimpath. Another choice compiles all packages again.
export CGO_ENABLED := 0

# For `make lab-chaos`: for how long, and the seeds (any if it is empty).
DURATION ?= 5m
SEED     ?=

# The version that programs and image give; Go's own words for it if empty.
VERSION ?=
# For `make image`: name and tag, by default those that `vipgen images` prints,
# and the directory to write into.
IMAGE    ?=
IMAGEDIR ?= bin/image
# For `make release`: the directory to write into, which must not hold anything yet.
RELEASEDIR ?= bin/release/$(VERSION)
# For `make release`: a file with the private key that signs it; unsigned if empty.
KEY        ?=

# For `make e2e`: what happens, by the beginnings of names, and the directory to write it down in.
FAULTS     ?= all
E2EREPORTS ?= bin
# More flags for `make e2e-life`, such as -workers 0.
LIFEFLAGS  ?=

# Each tool is pinned by a module of its own, internal/tools/NAME.
TOOLS := coredns ignition etcd kube-apiserver kubectl kustomize staticcheck govulncheck
BIN   := .cache/bin
# Those of real nodes and of MetalLB, which take minutes to build and nothing else needs.
E2E_TOOLS     := kubelet kube-proxy metallb-controller metallb-speaker
# A cluster of real nodes has that as well.
CLUSTER_TOOLS := kube-controller-manager
# Modules of their own, so that what they need is not what vipgen needs.
MODULES := internal/image lab lab/e2e/pods lab/e2e/metallb
# Packages of the lab's module but for tests with real nodes, which are targets of their own.
LAB := $$(go -C lab list ./... | grep -v /e2e/)
# Of these, those whose live tests run with the product's, by `make test-live` and `make
# test-elections`, since no whole cluster runs in them; and the others.
LAB_LIVE      := ./agents ./externallb ./testbed/...
LAB_ELECTIONS := ./adoption
LAB_CLUSTERS  := $$(go -C lab list ./... | grep -vE '/lab/(e2e|agents|externallb|testbed|adoption)(/|$$)')

# Ignition would label what it writes with SELinux's setfiles, which tests have
# no policy for; this is its own switch for distributions without SELinux.
CGO_ignition     := CGO_ENABLED=1
LDFLAGS_ignition := -X github.com/coreos/ignition/v2/internal/distro.selinuxRelabel=false

# Kubernetes takes the version that it says of itself from its release process.
LDFLAGS_kubelet := -X k8s.io/component-base/version.gitVersion=v1.34.2
LDFLAGS_kubectl := $(LDFLAGS_kubelet)
LDFLAGS_kube-controller-manager := $(LDFLAGS_kubelet)
LDFLAGS_kube-proxy := $(LDFLAGS_kubelet)

GO_BUILD = go build -trimpath -ldflags "-s -w -X github.com/vipgen/vipgen/cmd/command.stampedRevision=$$(git describe --always --abbrev=40 --dirty --exclude='*' 2>/dev/null)$(if $(VERSION), -X github.com/vipgen/vipgen/cmd/command.stamped=$(VERSION))"

.DELETE_ON_ERROR:
.PHONY: golden-trees help setup tools coredns e2e-tools e2e-setup e2e e2e-life build unit unit-product unit-lab test test-race test-all test-live test-elections test-lab test-variants test-measured test-image test-e2e show-cluster lint gofmt vet staticcheck govulncheck fuzz mutants bench-agent lab-bench lab-saturation lab-idle lab-chaos lab-upgrade pictures image release release-check

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install the Debian packages that are missing (needs root if any is)
	@internal/tools/setup

tools: $(TOOLS:%=$(BIN)/%) .cache/generations/trixie ## Build what the tests run, at its pinned version, into .cache/bin

.cache/generations/trixie: internal/tools/generations | setup
	internal/tools/generations .cache/generations
	@touch $@

e2e-tools: tools e2e-setup .cache/system $(E2E_TOOLS:%=$(BIN)/%) ## Build what real nodes run besides (needs root if a package is missing)

.cache/system: lab/e2e/firstboot/system | e2e-setup
	lab/e2e/firstboot/system $@
	@touch $@

$(BIN)/%: internal/tools/%/go.mod internal/tools/%/go.sum
	@mkdir -p $(BIN)
	@echo "building $*: the first time it takes a minute or more"
	$(CGO_$*) go -C internal/tools/$* build -ldflags '$(LDFLAGS_$*)' -o $(CURDIR)/$@ tool
	@touch $@

coredns: $(BIN)/coredns ## Build the CoreDNS that labs run, into .cache/bin

# It has only the plugins that are needed, and is built in a fifth of the time.
$(BIN)/coredns: internal/tools/coredns/main.go

# Building Ignition takes Debian packages.
$(BIN)/ignition: | setup

build: ## Build bin/vipgen, bin/kubectl-vipgen, bin/vipgen-agent, bin/vipgen-bgp and bin/vipgen-lab, static
	@[ -e bin/vipgen-lab ] || echo "building vipgen, kubectl-vipgen, vipgen-agent and vipgen-lab in bin: the first time it takes two minutes"
	$(GO_BUILD) -o bin/ ./cmd/vipgen ./cmd/kubectl-vipgen ./cmd/vipgen-agent ./cmd/vipgen-bgp
	cd lab && $(GO_BUILD) -o ../bin/ ./cmd/vipgen-lab

image: ## Make vipgen's image for all platforms without a registry, into bin/image (IMAGE=NAME:TAG, VERSION=v1.2.3)
	go -C internal/image run ./cmd/image vipgen --source ../.. --output $(abspath $(IMAGEDIR)) $(if $(IMAGE),--name $(IMAGE)) $(if $(VERSION),--version $(VERSION))

release: ## Make archives, image, bills of materials and checksums of a release into bin/release/VERSION (VERSION=v1.2.3), signed with a KEY
	go -C internal/image run ./cmd/image release --source ../.. --version '$(VERSION)' --output $(abspath $(RELEASEDIR)) $(if $(IMAGE),--name $(IMAGE)) $(if $(KEY),--key $(abspath $(KEY)))

release-check: .cache/system ## Make the release twice, from copies of the source at two places, compare all bytes, install it in a bare Debian and run its image in containerd; 20 minutes (needs root)
	VIPGEN_TESTS=release-check go -C internal/image test -count 1 -timeout 120m -run '^Test(Reproducible|Installed|VipgenImage|ContainerfileBuilds)$$' $(TESTFLAGS) .

e2e-setup: ## Install the Debian packages that real nodes and tests of images take as well (needs root if any is missing)
	@lab/e2e/setup

test-image: e2e-setup $(BIN)/coredns .cache/system ## Test images: in containerd, with buildah and skopeo (needs root)
	VIPGEN_TESTS=all $(RETEST) -C internal/image $(NOVET) -timeout 18m $(TESTFLAGS) ./...

unit: ## Run the tests that need neither root nor daemons; two minutes from nothing
	@$(MAKE) --no-print-directory -k -j 2 unit-product unit-lab

unit-product:
	$(UNIT) go test $(NOVET) $(TIMEOUT) $(PARALLEL) -p $(PACKAGES) $(TESTFLAGS) $$(go list ./... | $(NOT_UNIT))

unit-lab:
	$(UNIT) go -C lab test $(NOVET) $(TIMEOUT) $(PARALLEL) $(TESTFLAGS) $$(printf '%s\n' $(LAB) | $(NOT_UNIT))

test: setup $(BIN)/coredns ## Set up what is missing and run the deterministic tests and one smoke test; six minutes from nothing (needs root)
	VIPGEN_TESTS=test go test $(NOVET) $(TIMEOUT) $(TESTFLAGS) ./...
	VIPGEN_TESTS=test go -C lab test $(NOVET) $(TIMEOUT) $(TESTFLAGS) $(LAB)

test-race: ## Run the tests of make unit with Go's race detector, but for whole command lines (needs a C compiler)
	CGO_ENABLED=1 VIPGEN_TESTS=unit go test $(NOVET) -race $(TIMEOUT) $(TESTFLAGS) $$(go list ./... | grep -vxF -f <(go list $(RACELESS)))
	CGO_ENABLED=1 VIPGEN_TESTS=unit go -C lab test $(NOVET) -race $(TIMEOUT) $(TESTFLAGS) $(LAB)

test-all: test test-live test-variants test-measured test-image test-e2e ## Run every test; two hours (needs root)

test-live: setup tools ## Run live tests, whose daemons may be late, but for the elections; a failed one again, alone (needs root)
	$(LIVE) $(NOVET) -timeout 23m -p 3 -parallel 4 $(TESTFLAGS) $(patsubst %,./%,$(filter-out $(ELECTIONS),$(WITH_LIVE)))
	$(LIVE) -C lab $(NOVET) -timeout 23m -p 1 -parallel 4 $(TESTFLAGS) $(LAB_LIVE)

test-elections: setup tools ## Run live tests of agents and keepalived that elect nodes for minutes; a failed one again, alone (needs root)
	$(LIVE) $(NOVET) -timeout 40m -p 1 -parallel 6 $(TESTFLAGS) $(ELECTIONS:%=./%)
	$(LIVE) -C lab $(NOVET) -timeout 40m -p 1 -parallel 6 $(TESTFLAGS) $(LAB_ELECTIONS)

test-lab: setup tools ## Run live tests of whole clusters in namespaces: moves, chaos, real API servers; a failed one again, alone (needs root)
	$(LIVE) -C lab $(NOVET) -timeout 40m -p 1 -parallel 2 $(TESTFLAGS) $(LAB_CLUSTERS)

test-variants: LIVE := VIPGEN_TESTS=variants $(RETEST)
test-variants: test-elections test-lab ## Run both with the variants of these tests: other families, directions and profiles; for releases (needs root)

test-measured: setup tools ## Run tests of promises in milliseconds and bytes, on an idle machine (needs root)
	VIPGEN_TESTS=measured $(RETEST) -C lab $(NOVET) -timeout 15m -p 1 -parallel 1 $(TESTFLAGS) $(MEASURED_LAB)
	VIPGEN_TESTS=measured $(RETEST) $(NOVET) -timeout 15m -p 1 -parallel 1 $(TESTFLAGS) $(MEASURED)

show-cluster: setup tools ## Run a whole cluster in namespaces and show what it does (needs root)
	VIPGEN_TESTS=all go -C lab test -count 1 -timeout 30m -run '^TestCluster$$' -v .

golden-trees: # all files of every golden case, which golden/ keeps as differences, for tests of other modules
	VIPGEN_TESTS=all go test $(NOVET) -count 1 -run '^TestCases$$/^.*$$/^expected$$' ./golden -args -trees $(CURDIR)/.cache/golden

test-e2e: e2e-tools golden-trees ## Test pods with kubelet's code, MetalLB's objects with MetalLB, and nodes that boot with systemd, two of which are a control plane (needs root)
	$(LIVE) -C lab/e2e/pods $(NOVET) -count 1 $(TIMEOUT) $(TESTFLAGS) ./...
	$(LIVE) -C lab/e2e/metallb $(NOVET) -count 1 $(TIMEOUT) $(TESTFLAGS) ./...
	$(LIVE) -C lab $(NOVET) -count 1 -p 1 -timeout 28m $(TESTFLAGS) ./e2e/firstboot

e2e: e2e-tools $(CLUSTER_TOOLS:%=$(BIN)/%) ## Run a cluster of real nodes and break all of it; two hours (needs root)
	VIPGEN_TESTS=all go -C lab test -count 1 -timeout 20m -v -run Registry ./e2e/firstboot -args -away 3m
	VIPGEN_TESTS=all go -C lab test -count 1 -timeout 2h -v -run HardCase43 ./e2e/firstboot -args -shutdowns 5
	VIPGEN_TESTS=all go -C lab test -count 1 -timeout 4h -v ./e2e/cluster -args -workers 2 -faults '$(FAULTS)' -reports '$(abspath $(E2EREPORTS))'

e2e-life: e2e-tools $(CLUSTER_TOOLS:%=$(BIN)/%) ## Take a cluster of real nodes from OpenShift's own keepalived to vipgen, through updates of both, and back; half an hour, from a clone with its history (needs root)
	VIPGEN_TESTS=e2e-life go -C lab test -count 1 -timeout 90m -run '^TestLife$$' -v ./e2e/cluster -args -reports '$(abspath $(E2EREPORTS))' $(LIFEFLAGS)

lint: gofmt vet staticcheck govulncheck ## Check the source: gofmt, go vet, staticcheck, govulncheck

lab-chaos: setup tools build ## Break a cluster in namespaces at random for DURATION (5m) by each SEED, and watch what must hold (needs root)
	@failed=0; for seed in $(or $(SEED),random); do \
		bin/vipgen lab chaos --duration $(DURATION) $$([ $$seed = random ] || echo --seed $$seed) --coredns .cache/bin/coredns || failed=$$?; \
	done; exit $$failed

lab-upgrade: setup tools ## Upgrade a cluster in namespaces from the version before and downgrade it: 3 minutes, from a clone with its history (needs root)
	VIPGEN_TESTS=lab-upgrade go -C lab test -count 1 -timeout 30m -run '^TestUpgrade$$' -v .

gofmt:
	@bad=$$(find . -path ./.cache -prune -o -name '*.go' -exec gofmt -l {} +); \
	if [ -n "$$bad" ]; then echo "not gofmt'ed:" $$bad >&2; exit 1; fi

vet:
	go vet ./...
	GOOS=windows go build -trimpath -o /dev/null ./cmd/vipgen # what tests of images build too
	for module in $(MODULES); do go -C $$module vet ./... || exit; done

staticcheck: $(BIN)/staticcheck
	$(BIN)/staticcheck ./...
	for module in $(MODULES); do (cd $$module && $(CURDIR)/$(BIN)/staticcheck ./...) || exit; done

govulncheck: $(BIN)/govulncheck
	@internal/tools/govulncheck/run $(BIN)/govulncheck ./...
	@internal/tools/govulncheck/run $(BIN)/govulncheck -C internal/image ./...
	@internal/tools/govulncheck/run $(BIN)/govulncheck -C lab ./...

fuzz: ## Run every fuzz target for FUZZTIME (20s)
	@for module in . lab; do \
		cd $(CURDIR)/$$module; \
		targets=$$(go test -list '^Fuzz' ./... | \
			awk '/^Fuzz/ { names[++n] = $$1 } /^ok/ { for (i = 1; i <= n; i++) print $$2, names[i]; n = 0 }'); \
		while read -r package name; do \
			echo "$$package $$name for $(FUZZTIME)"; \
			$(CURDIR)/internal/tools/fuzz "$$package" "$$name" $(FUZZTIME) </dev/null; \
		done <<<"$$targets"; \
	done

# How many mutants, and the seed of their choice.
MUTANTS ?= 300
MUTATED := ./render/... ./templates/... ./internal/vrrp/... ./agent/migration ./agent/nodeip ./ignition/... ./internal/proof/verify

mutants: ## Change the source at random places (MUTANTS=300, SEED) and list the changes that no test of make unit notices; 20 minutes
	go run ./internal/tools/mutate -n $(MUTANTS) -seed $(or $(SEED),1) -also './golden ./cmd/cli ./internal/day2/...' $(MUTATED)

bench-agent: setup tools ## Measure the agent: binary, memory, time on cores, start, change of peers (needs root)
	VIPGEN_TESTS=all go test -run '^$$' -bench Agent -benchtime 1x -timeout 15m ./cmd/vipgen-agent

# Where lab-bench writes its reports; a directory of its own unless given.
BENCHDIR ?=
# More flags for lab-bench and lab-saturation.
BENCHFLAGS ?=

lab-bench: build setup $(BIN)/coredns ## Measure what clients see of failures, beside today's configuration; an hour and more (needs root)
	@dir="$(BENCHDIR)"; dir=$${dir:-$$(mktemp -d -t vipgen-bench-XXXXXX)}; mkdir -p "$$dir"; \
	bin/vipgen lab bench --saturate 10m --html "$$dir/bench.html" --json "$$dir/bench.json" $(BENCHFLAGS) | tee "$$dir/bench.txt"; \
	echo "lab-bench: the reports are in $$dir" >&2

lab-saturation: build setup $(BIN)/coredns ## Count needless failovers with all cores busy, by advert interval (needs root)
	bin/vipgen lab saturate $(BENCHFLAGS)

lab-idle: setup $(BIN)/coredns ## Print what each process of an idle cluster in namespaces takes of a core, beside those of the vipgen-agent that BASE names (needs root)
	VIPGEN_TESTS=all VIPGEN_IDLE_BASE=$(abspath $(BASE)) go -C lab test -run '^$$' -bench Idle -benchtime 1x -timeout 15m .

pictures: build setup $(BIN)/coredns ## Draw the pictures of the docs anew, those of a lab from one that runs (needs root)
	PATH="$(CURDIR)/$(BIN):$$PATH" docs/pictures/record docs/pictures
	VIPGEN_TESTS=unit go test -count 1 -run '^(TestRecordings|TestPictures)$$' ./internal/svg ./cmd/cli -update
	VIPGEN_TESTS=unit go -C lab test -count 1 -run '^TestFailoverPicture$$' ./report -update
