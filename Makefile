# Everything that can be done here. `make help` explains the targets; the first two to try are `make demo` and `make test`.

DENO_VERSION := 2.9.6

# A Deno of exactly that version: the one on the PATH, else one brought from npm into .tools/. Looked for once, when needed.
DENO = $(eval DENO := $$(or $$(shell tools/get-deno.sh $(DENO_VERSION) .tools),$$(error there is no Deno $(DENO_VERSION))))$(DENO)

# Trust the certificates that this machine trusts.
export DENO_TLS_CA_STORE ?= system
export DENO_NO_UPDATE_CHECK = 1

# What compiles the executable: a Deno and its runtime. Empty: the Deno above, and a runtime that it downloads.
export DENO_COMPILE ?=
export DENORT_BIN ?=
# The same runtime for arm64, where `make image/binaries` cannot download it.
export DENORT_BIN_ARM64 ?=
# The only hosts that the executable may ever reach, and more folders that it may use; both separated by commas.
export ALLOW_NET ?=
export ALLOW_FOLDERS ?=
# Another platform to compile for, such as aarch64-unknown-linux-gnu.
export COMPILE_TARGET ?=

# Tests to run with `make test/some`, and a flag that makes a skipped test a failure.
T ?= src
STRICT ?=
# Suites to run with `make test/guest` or `make test/cluster`, all when empty, and how many guests at a time.
S ?=
JOBS ?= 1

# As the executable's permissions, from the sources; the proto file is inside the executable.
SOURCES = "$(DENO)" run --quiet $$("$(DENO)" run --allow-all tools/permissions_flags.ts $(1)) src/main.ts

.DEFAULT_GOAL := help
.PHONY: docs help demo test test/unit test/tests test/some test/contract test/fault test/build test/guest test/cluster test/nightly verify verify/% format generate manifests helm build image/binaries release sanity \
	sanity/sources sanity/binary bench bench/short soak ci clean
.SILENT:

help: ## Print every target with what it does.
	awk -F ':.*## ' '/^[a-z\/%-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: ## Take a file system and a block volume through their lives on a simulated router; root shows the node's half too.
	$(call SOURCES,demo) demo

test: ## Run all tests that need only the sources, and count them; what this machine cannot run is listed.
	"$(DENO)" run --allow-all tools/test_run.ts $(STRICT) test src tools tests tests/cluster/e2e

test/unit: ## Run the tests that lie beside the code.
	"$(DENO)" run --allow-all tools/test_run.ts $(STRICT) unit src tools

test/tests: ## Run the tests of tests/: contracts of adapters, and whatever needs several parts at once.
	"$(DENO)" run --allow-all tools/test_run.ts $(STRICT) tests tests tests/cluster/e2e

test/some: ## Run the tests of one file or folder: make test/some T=src/volume
	"$(DENO)" run --allow-all tools/test_run.ts $(STRICT) some $(T)

test/contract: ## Try the RouterOS adapter and the controller on simulated routers of every kind, and print the matrix.
	"$(DENO)" run --allow-all tests/contract/matrix.ts

test/fault: ## Let everything go wrong at every command of every call of the controller, and print the matrix.
	"$(DENO)" run --allow-all tests/fault/matrix.ts

test/build: ## Test the compiled executable, above all what it refuses to do; after make build.
	"$(DENO)" run --allow-all tools/test_run.ts $(STRICT) build tests/build

test/guest: ## Try real NVMe/TCP in QEMU guests with kernels of their own: make test/guest [S=suite] [JOBS=2]; after make build.
	"$(DENO)" run --allow-all tests/guest/run.ts $(STRICT) --jobs $(JOBS) $(S)

test/cluster: ## Try the driver in a real cluster on this machine: make test/cluster [S=suite]; needs root and Go, builds for 10 minutes once.
	"$(DENO)" run --allow-all tools/test_run.ts $(STRICT) cluster/kit tests/cluster/kit
	"$(DENO)" run --allow-all tests/cluster/run.ts $(STRICT) $(S)

test/nightly: export MATRIX_RANDOM = 400
test/nightly: export MATRIX_ALL = 1
test/nightly: export GUEST_WHOLE = 1
test/nightly: export CLUSTER_WHOLE = 1
test/nightly: test test/contract test/fault test/guest test/cluster soak ## Try everything of which CI tries a part, with new random numbers: hours; make -k goes on after a failure; after make build.

verify: ## Check formatting, lint, types, the direction of imports, sizes, generated files, and the files of proto/ against the published ones.
	"$(DENO)" run --allow-all tools/verify.ts $(STRICT)

verify/%: ## Run one of these checks: verify/format, lint, architecture, types, generated, docs, manifests, proto.
	"$(DENO)" run --allow-all tools/verify.ts $*

format: ## Format every file.
	"$(DENO)" fmt --quiet

generate: ## Make the TypeScript types from the files of proto/ again.
	"$(DENO)" run --allow-all tools/proto/generate.ts

docs: ## Write the reference pages that follow from the code.
	"$(DENO)" run --allow-all tools/docs.ts

manifests: ## Render deploy/manifests from deploy/chart; after make helm.
	"$(DENO)" run --allow-all tools/deploy/manifests.ts

helm: ## Build Helm into the cache, from the Go module proxy: minutes, once.
	tools/get-helm.sh --build

build: ## Compile dist/rds-csi, with exactly the permissions that it needs inside.
	"$(DENO)" run --allow-all tools/build.ts

image/binaries: ## Compile the executables for the image, amd64 and arm64, into dist/linux-…; downloads both runtimes.
	COMPILE_TARGET=x86_64-unknown-linux-gnu "$(DENO)" run --allow-all tools/build.ts --out dist/linux-amd64/rds-csi
	COMPILE_TARGET=aarch64-unknown-linux-gnu DENORT_BIN="$(DENORT_BIN_ARM64)" "$(DENO)" run --allow-all tools/build.ts \
	  --out dist/linux-arm64/rds-csi

release: image/binaries ## Put a release together in dist/release: both executables, chart, manifests, licences, bill of materials, checksums.
	"$(DENO)" run --allow-all tools/release/release.ts

sanity: sanity/binary sanity/sources ## Run csi-sanity against the executable (if built) and the sources; needs root and Go.

sanity/sources: ## Run csi-sanity against the sources.
	"$(DENO)" run --allow-all tests/sanity/run.ts sources

sanity/binary: ## Run csi-sanity against dist/rds-csi; says so when it is not built.
	"$(DENO)" run --allow-all tests/sanity/run.ts binary $(STRICT)

bench: ## Measure latency, router commands, start, memory and size into dist/bench.json; takes minutes.
	"$(DENO)" run --allow-all tests/bench/run.ts

bench/short: ## The same with fewer calls.
	"$(DENO)" run --allow-all tests/bench/run.ts --short

soak: ## Let the executable (or the sources) answer 100,000 calls, and judge whether its memory grows; minutes.
	"$(DENO)" run --allow-all tests/bench/soak.ts

ci: ## Run everything that a change has to pass, as on an empty machine; installs Debian packages, so root.
	.ci/run

clean: ## Remove what was built. The Deno in .tools/ stays.
	rm -rf dist
