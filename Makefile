# `make help` lists what there is. Nothing here needs more than Go, a shell and
# make; what a target misses beyond that it installs, and says so.
SHELL := /bin/bash
.DEFAULT_GOAL := build
MAKEFLAGS += --no-print-directory

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  = -s -w -X github.com/llmdo/workshop/internal/cli.linkedVersion=$(VERSION)
GO      ?= go
ARCHES  := amd64 arm64
INITS   := $(ARCHES:%=bin/workshop-init-linux-%)
# workshop-init speaks HTTP/1.1 only; without this it links HTTP/2 for nobody.
INIT_TAGS := nethttpomithttp2
# No signal of the runtime takes memory where a worker has none left (internal/initimage/flags.go).
INIT_LDFLAGS := -s -w -X runtime.godebugDefault=asyncpreemptoff=1
# Nothing validates by calling a method that a tag names. What does so makes the
# linker keep every exported method: 3 MB. Registries and engines answer HTTP/1.1 too: HTTP/2
# is 0.5 MB.
HOST_TAGS := validator_novalidatefn,nethttpomithttp2
# The version says which commit it is; what git says of a directory changes no byte.
HOST_FLAGS = -trimpath -buildvcs=false -tags=$(HOST_TAGS)

# Versions of programs that are run from their modules and not linked.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
NFPM        := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0
SBOM        := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
DEADCODE    := golang.org/x/tools/cmd/deadcode@v0.51.0

.PHONY: help build inits programs vm test test-engines test-engines-full test-user test-short test-race test-vm test-breaks test-verify cross vet lint bench bench-kvm soak dist generate verify demo model-test worker-image fuzz clean

help: ## lists the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | column -t -s "$$(printf '\t')"

build: inits programs ## bin/workshop, bin/llmdo and the static bin/workshop-init-linux-{amd64,arm64}, bin/workshop-vm

CMDS := ./cmd/workshop ./cmd/llmdo
programs: vm
	CGO_ENABLED=0 $(GO) build $(HOST_FLAGS) -ldflags '$(LDFLAGS)' -o bin/ $(CMDS)

# Virtual machines are for Linux on amd64 alone.
vm:
	CGO_ENABLED=0 GOOS=linux GOARCH=amd64 $(GO) build -trimpath -buildvcs=false -ldflags '-s -w' -o bin/workshop-vm ./cmd/workshop-vm

# workshop-init comes first: the host programs embed it, compressed. Go decides
# what has to be built again, so these are no file targets.
inits:
	@mkdir -p bin
	@for arch in $(ARCHES); do \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -trimpath -buildvcs=false -tags $(INIT_TAGS) -ldflags '$(INIT_LDFLAGS)' -o bin/workshop-init-linux-$$arch ./cmd/workshop-init || exit 1; \
		scripts/embed bin/workshop-init-linux-$$arch || exit 1; \
	done

test: ## packages, and the scenarios on the namespace engine as root
	@HOST_FLAGS='$(HOST_FLAGS)' scripts/test

test-engines: ## what needs Docker: its package, with an engine of its own where none answers, and the scenarios; podman: those that touch what differs
	@HOST_FLAGS='$(HOST_FLAGS)' scripts/test engines

test-engines-full: ## all scenarios on podman and on gVisor, some in virtual machines; those of e2e/podman.txt, gvisor.txt and vm.txt must fail
	@HOST_FLAGS='$(HOST_FLAGS)' scripts/test engines-full

test-user: ## what an ordinary user has: the scenarios rootless, and what is released: archives, packages, the action, `go install`
	@HOST_FLAGS='$(HOST_FLAGS)' scripts/test user

test-short: ## what needs neither root nor an engine
	$(GO) vet ./...
	$(GO) test -short ./...

test-race: ## guard, room and supervisor with the race detector
	scripts/race

test-vm: ## what depends on the kernel, on another one (6.1, in a virtual machine): control groups of version 2 alone, and of 1; no netfilter; systemd; podman without root
	scripts/vm --swap --test ./internal/lib/cgroup
	scripts/vm --rootless --swap --test ./internal/lib/cgroup -run TestReal
	scripts/vm --cgroup 1 --swap --test ./internal/lib/cgroup
	scripts/vm --netfilter none --test ./internal/room -run AnyIP
	scripts/vm --netfilter none --test ./internal/guard -run AnyIP
	$(MAKE) build ARCHES=amd64
	VM_TIMEOUT=900 scripts/vm --systemd --with "$$(command -v install)" "$$(cat scripts/vm-scope)"
	DIST=$(CURDIR)/.workshop-cache/dist PLATFORMS=linux/amd64 $(MAKE) dist
	VM_TIMEOUT=900 scripts/vm --podman --internet --package .workshop-cache/dist/workshop_*_amd64.deb "$$(cat scripts/vm-podman)"

test-breaks: build ## breaks each promise, each check of the guard and of the fences once, and expects exactly its tests to fail
	[ "$$($(GO) env GOARCH)" != amd64 ] || scripts/need qemu-system-x86_64=qemu-system-x86
	scripts/with-engine $(GO) run ./e2e/breaks/checks
	scripts/with-engine $(GO) run ./e2e/breaks/run

test-verify: build ## breaks what runs, one promise at a time, and expects `workshop verify` to find it
	scripts/with-engine $(GO) run ./e2e/breaks/run -verify

cross: ## builds the host programs for macOS and Windows; the tests only check their types
	GOOS=darwin $(GO) build -o /dev/null ./cmd/workshop && GOOS=darwin $(GO) vet ./cmd/llmdo
	GOOS=windows $(GO) build -o /dev/null ./cmd/workshop && GOOS=windows $(GO) vet ./cmd/llmdo

vet: ## go vet, which CI runs after the tests
	CGO_ENABLED=0 $(GO) vet $(HOST_FLAGS) ./...

lint: vet ## go vet, staticcheck, govulncheck, and no function that nothing calls
	$(GO) run $(STATICCHECK) ./...
	scripts/vulncheck $(GO) run $(GOVULNCHECK)
	@# An example without an output is only compiled.
	found=$$($(GO) run $(DEADCODE) -test ./...) && ! grep -v 'func: Example' <<<"$$found" | grep .

bench: build ## the rows of the speed table, beside their peers
	scripts/with-engine $(GO) run ./bench

bench-kvm: build ## the rows of a virtual machine with KVM, where the processor has it
	$(GO) run ./bench -only kvm

soak: build ## a guard under load, one of its rooms hostile, for FOR (default 10m), as root: what it uses must not grow; then commands are killed at random for KILLS (default 2m), and the next one must work
	$(GO) run ./bench -only soak -for $(or $(FOR),10m)
	scripts/with-engine $(GO) run ./bench -only kills -for $(or $(KILLS),2m)

dist: inits vm ## what is released, into dist/: archives, .deb, .rpm, checksums, SBOM, Homebrew formula
	@VERSION='$(VERSION)' LDFLAGS='$(LDFLAGS)' HOST_FLAGS='$(HOST_FLAGS)' NFPM='$(NFPM)' SBOM='$(SBOM)' scripts/dist

generate: ## files that are made from others: schemas, seccomp filters, docs/reference.md, parts of docs/{engines,security,threat-model,tools,verify}.md
	$(GO) generate ./...

verify: generate ## fails when a generated file isn't up to date
	@git diff --exit-code || { echo "generated files differ: run make generate and commit" >&2; exit 1; }

model-test: ## a real model in a room: FILE=x.gguf, with IMAGE=host the machine's own llama-server
	$(MAKE) build ARCHES=$$($(GO) env GOARCH)
	scripts/model-test $(FILE)

demo: ## a worker shows what it can and can't do; ENGINE=docker: on Docker
	scripts/demo $(if $(ENGINE),-engine $(ENGINE))

worker-image: ## a useful image for workers: git, ripgrep, Python, Node
	docker build -t llm-do-worker:latest docker/worker

fuzz: ## each fuzz target for FUZZTIME (default 20s)
	scripts/fuzz

clean:
	rm -rf bin internal/initimage/bin/*/*.zst internal/initimage/bin/*/*.json
