# make          programs and manuals, into build/bin and build/man
# make check    build, unit tests, program tests, golden files, lint
# make nightly  comparisons with peers, long tests, attacks
# make demo     the main job on a novel, with its figures and a sample
#
# make cuda     programs and the plug-in that uses NVIDIA GPUs, into build-cuda/
# make gpu-check | gpu-bench   on a machine with a GPU; make gpu-pack: for one without network, into build-gpu/
#
# make dist     a tarball for machines without root, compiler or network, into build-dist/; wheel, deb: the same so packed
# make html      manuals, the tutorial and the README as pages: build/html/index.html
#
# make bench | growth | fuzz | attack | asan | check-kernels | check-avx2 | lint | format | install | clean
#
#   BUILD=DIR            build folder [build]
#   JOBS=N               parallel compilers [ninja's choice]
#   CMAKE_ARGS=...       more arguments for cmake, such as -DTESSERA_ARCH=x86-64-v3
#   LIBTORCH=DIR         an unpacked LibTorch; see tools/setup --help for where it is looked for
#   PREFIX=DIR           where make install puts things [/usr/local]; DESTDIR goes before it
#   PROGRAM_PREFIX=P     put before each installed program's and manual's name
#   CI=true              warnings are errors
#   SKIPS=1              make check lists the tests that were skipped, and why

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := all
.PHONY: all cuda gpu-check gpu-bench gpu-pack setup setup-check setup-cuda configure tests check check-kernels check-avx2 nightly demo html bench growth fuzz attack asan lint format install dist wheel deb clean

BUILD ?= build
PREFIX ?= /usr/local
export BUILD JOBS SKIPS

configuration = $(CMAKE_ARGS) -DTESSERA_WERROR=$(if $(CI),ON,OFF)
ninja = tools/ninja $(BUILD) $(if $(JOBS),-j $(JOBS))

all: configure
	@$(ninja)

# With LibTorch's CUDA build: .deps/cuda, or LIBTORCH.
cuda: BUILD := build-cuda
cuda: CMAKE_ARGS += -DTESSERA_CUDA=ON
cuda: export LIBTORCH := $(or $(LIBTORCH),$(CURDIR)/.deps/cuda/torch)
cuda: $(if $(LIBTORCH),,setup-cuda) all
	@$(ninja) bench_device_search

setup-cuda:
	@tools/setup cuda

gpu-check: BUILD := build-cuda
gpu-check:
	@tools/gpu-check

gpu-bench: BUILD := build-cuda
gpu-bench:
	@tools/gpu-bench

# Programs, plug-in and tests for a processor that is not this one.
gpu-pack: BUILD := build-gpu
gpu-pack: CMAKE_ARGS += -DTESSERA_CUDA=ON -DTESSERA_ARCH=x86-64-v3
gpu-pack: export LIBTORCH := $(or $(LIBTORCH),$(CURDIR)/.deps/cuda/torch)
gpu-pack: $(if $(LIBTORCH),,setup-cuda) tests
	@$(ninja) bench_device_search
	@tools/gpu-pack

html: all
	@tools/html

setup:
	@tools/setup build

# Without PyPI the tests of a real model and of Parquet are skipped, which the check says.
setup-check:
	@tools/setup build check
	@tools/setup model parquet || echo 'tests of a real model and of Parquet will be skipped' >&2

# cmake runs again by itself when its files change; here only when the arguments do.
configure: setup
	@arguments='$(configuration) $(LIBTORCH) $(CMAKE_PREFIX_PATH)'" $$(echo .deps/faiss/lib/*.a)"; \
	if [ ! -e $(BUILD)/build.ninja ] || [ "$$(cat $(BUILD)/.arguments 2>/dev/null)" != "$$arguments" ]; then \
	  cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING -U 'FAISS_*' -U 'TESSERA_*' $(configuration); \
	  echo "$$arguments" >$(BUILD)/.arguments; \
	fi

test_targets = all unit-tests
# What was configured before the tests' libraries were there has no unit tests yet.
tests: setup-check configure
	@grep -q unit_core $(BUILD)/build.ninja || cmake -S . -B $(BUILD) --log-level=WARNING
	@$(ninja) $(test_targets)

check: tests
	@tools/check

# What takes too long for every change, or needs peers: TESSERA_PEERS is a python that has them.
nightly: tests
	@tools/check nightly

# The unit and program tests once more, on the kernels and the matrix products of a processor without AVX-512: what holds
# on one machine alone is seen here. Only the kernels are compiled anew. CHECKS=kernels: only the unit
# tests that run kernels.
CHECKS ?= unit cli
check-avx2: BUILD := build-avx2
check-avx2: CMAKE_ARGS += -DTESSERA_ARCH=x86-64-v3
check-avx2: test_targets = $(if $(filter-out kernels,$(CHECKS)),all unit-tests,kernel-tests)
check-avx2: tests
	@MKL_ENABLE_INSTRUCTIONS=AVX2 tools/check $(CHECKS)

# The CUDA kernels, run on the CPU, under the sanitizers: ThreadSanitizer takes each of a kernel's threads for one of its
# own, and must find what is planted.
check-kernels: setup-check configure
	@$(ninja) sanitized-kernels
	@$(BUILD)/tests/cuda_kernels_asan --minimal
	@$(BUILD)/tests/cuda_kernels_tsan --minimal --test-case-exclude='race:*'
	@if $(BUILD)/tests/cuda_kernels_tsan --test-case='race: a missing*' >$(BUILD)/tests/planted.log 2>&1 || \
	  ! grep -q 'ThreadSanitizer: data race' $(BUILD)/tests/planted.log; then \
	  echo 'check-kernels: a planted race was not found, see $(BUILD)/tests/planted.log' >&2; exit 1; \
	fi

demo: all
	@tools/demo

bench: all
	@tools/setup bench
	@tools/bench

# Time and memory of growing inputs, with exponents: build/growth/growth.tsv. SIZE=full: up to 1e8 tokens and 1e7 keys.
SIZE ?= small
growth: all
	@PATH=$(abspath $(BUILD))/bin:$$PATH python3 tests/bench/growth.py $(BUILD)/growth $(SIZE)

fuzz: setup
	@tools/setup fuzz
	@tools/fuzz

attack: tests
	@tools/attack

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
	@$(ninja)
	@DESTDIR='$(DESTDIR)' cmake --install $(BUILD)

# For any processor with AVX2, and AVX-512 where there is: what these pack is one tree.
dist wheel deb: BUILD := build-dist
dist wheel deb: CMAKE_ARGS += -DTESSERA_ARCH=portable -DTESSERA_RELOCATABLE=ON -DTESSERA_LINKS=OFF -DTESSERA_CUDA=OFF -DTESSERA_DEVELOP=OFF -DTESSERA_FORK_SERVER=OFF
dist wheel deb: all
	@tools/setup dist
	@tools/dist $@

clean:
	@rm -rf $(BUILD) build-dist build-avx2 build-asan build-cuda build-gpu build-fuzz
