# make          programs and manuals, into build/bin and build/man
# make check    all that CI runs: build, unit tests, program tests, golden files, lint
# make demo     the main job on a novel, with its figures and a sample
#
# make bench | fuzz | asan | lint | format | install | clean
#
#   BUILD=DIR            build folder [build]
#   JOBS=N               parallel compilers [ninja's choice]
#   CMAKE_ARGS=...       more arguments for cmake, such as -DTESSERA_ARCH=x86-64-v3
#   LIBTORCH=DIR         an unpacked LibTorch; see tools/setup --help for where it is looked for
#   PREFIX=DIR           where make install puts things [/usr/local]; DESTDIR goes before it
#   PROGRAM_PREFIX=P     put before each installed program's and manual's name
#   CI=true              warnings are errors

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := all
.PHONY: all setup setup-check configure tests check demo bench fuzz asan lint format install clean

BUILD ?= build
PREFIX ?= /usr/local
export BUILD JOBS

configuration = $(CMAKE_ARGS) -DTESSERA_WERROR=$(if $(CI),ON,OFF)
ninja = ninja -C $(BUILD) $(if $(JOBS),-j $(JOBS)) --quiet

all: configure
	@$(ninja)

setup:
	@tools/setup build

setup-check:
	@tools/setup build check

# cmake runs again by itself when its files change; here only when the arguments do.
configure: setup
	@arguments='$(configuration) $(LIBTORCH) $(CMAKE_PREFIX_PATH)'; \
	if [ ! -e $(BUILD)/build.ninja ] || [ "$$(cat $(BUILD)/.arguments 2>/dev/null)" != "$$arguments" ]; then \
	  cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING $(configuration); \
	  echo "$$arguments" >$(BUILD)/.arguments; \
	fi

# What was configured before the tests' libraries were there has no unit tests yet.
tests: setup-check configure
	@grep -q unit_core $(BUILD)/build.ninja || cmake -S . -B $(BUILD) --log-level=WARNING
	@$(ninja) all unit-tests

check: tests
	@tools/check

demo: all
	@tools/demo

bench: all
	@tools/setup bench
	@tools/bench

fuzz: setup
	@tools/setup fuzz
	@tools/fuzz

# The unit tests once more, with AddressSanitizer and UndefinedBehaviorSanitizer.
asan: BUILD := build-asan
asan: CMAKE_ARGS += -DTESSERA_SANITIZE=ON
asan: tests
	@tools/check unit

lint: setup-check configure
	@tools/lint

format:
	@tools/lint --fix

install: all
	@cmake -S . -B $(BUILD) -DTESSERA_PROGRAM_PREFIX='$(PROGRAM_PREFIX)' -DCMAKE_INSTALL_PREFIX='$(abspath $(PREFIX))' >/dev/null
	@DESTDIR='$(DESTDIR)' cmake --install $(BUILD)

clean:
	@rm -rf $(BUILD) build-asan build-fuzz
