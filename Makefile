# Everything that can be done here: the tasks of deno.json, of which `make help` prints the list. A target is named as its
# task, with a slash for the colon. The first two to try are `make demo` and `make test`.

# A Deno of the pinned version: the one in .tools/, on the PATH, or brought from npm into .tools/. Looked for once, when needed.
find_deno = $(or $(shell tools/get-deno.sh $(1) .tools),$(error there is no Deno of the pinned version))
DENO = $(eval DENO := $$(call find_deno))$(DENO)
# What is to be released is made by the one whose bytes npm has compared with the pinned ones.
CHECKED_DENO = $(eval CHECKED_DENO := $$(call find_deno,--checked))$(CHECKED_DENO)
image image/binaries release: DENO = $(CHECKED_DENO)

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
# The SSH key that signs a release, and the home of its chart.
export RELEASE_SIGNING_KEY ?=
export PROJECT_URL ?=
# Another platform to compile for, such as aarch64-unknown-linux-gnu.
export COMPILE_TARGET ?=

# Tests to run with `make test/some`, and a flag that makes a skipped test a failure.
export T ?= src
export STRICT ?=
# The commit that `make proof/compare` compares this tree with.
export REV ?= main
# Suites to run with `make test/guest` or `make test/cluster`, all when empty, and how many guests at a time.
export S ?=
export JOBS ?= 1

TASKS := $(shell sed -n '/^  "tasks"/,/^  }/s/^    "\([a-z:]*\)": {$$/\1/p' deno.json)

.DEFAULT_GOAL := help
.PHONY: help $(subst :,/,$(TASKS))
.SILENT:

help:
	awk -F '"' '/^  "/ { inside = /"tasks"/ } inside && /^    "/ { name = $$2; gsub(":", "/", name) } \
	  inside && /^      "description"/ { printf "  make %-16s %s\n", name, $$4 }' deno.json

# What Deno itself says of packages that it cannot download helps nobody.
define packages
"$(DENO)" install --quiet --entrypoint src/main.ts >/dev/null 2>&1 || { \
  echo "Cannot get the npm packages of deno.json: without a network, set DENO_DIR to a cache that has them, and" \
    "DENORT_BIN=/path/to/denort for make build; with one, deno install says more" >&2; exit 1; }
endef

$(subst :,/,$(TASKS)):
	$(if $(filter helm test/packages,$@),,$(packages))
	"$(DENO)" task --quiet $(subst /,:,$@)

verify/%:
	$(packages)
	"$(DENO)" task --quiet verify $*
