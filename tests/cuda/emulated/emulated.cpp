// The threads of a block as fibers of one thread of the system. ThreadSanitizer is told of them and
// of what orders them, so this file itself is compiled without it.

#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "cuda_runtime.h"

#ifdef EMULATED_TSAN
#include <sanitizer/tsan_interface.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulated {

Schedule schedule;
std::string skip;

namespace {

// Plain memory: threads come here in the middle of a kernel, where ThreadSanitizer watches what the
// library does.
constexpr std::size_t kMostBarriers = 256;
const char* barriers[kMostBarriers];
std::size_t n_barriers = 0;

void note(const char* barrier) {
  for (std::size_t i = 0; i < n_barriers; ++i)
    if (barriers[i] == barrier) return;
  if (n_barriers < kMostBarriers) barriers[n_barriers++] = barrier;
}

constexpr std::size_t kStackBytes = 128 << 10;

// ThreadSanitizer's view: a fiber is a thread, switching orders nothing, release and acquire of an
// address do.
#ifdef EMULATED_TSAN
using Fiber = void*;
Fiber this_fiber() { return __tsan_get_current_fiber(); }
Fiber make_fiber() { return __tsan_create_fiber(0); }
void end_fiber(Fiber fiber) { __tsan_destroy_fiber(fiber); }
void on_switch(Fiber to) { __tsan_switch_to_fiber(to, __tsan_switch_to_fiber_no_sync); }
void release(void* at) { __tsan_release(at); }
void acquire(void* at) { __tsan_acquire(at); }
#else
struct Fiber {};
Fiber this_fiber() { return {}; }
Fiber make_fiber() { return {}; }
void end_fiber(Fiber) {}
void on_switch(Fiber) {}
void release(void*) {}
void acquire(void*) {}
#endif

enum class Waits { no, for_block, for_warp, ended };

struct Thread {
  ucontext_t context{};
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  Fiber fiber = make_fiber();
  Waits waits = Waits::no;
  const char* barrier = "";
  uint3 index;
  std::uint64_t bits = 0;
  unsigned from = 0;
  Thread() = default;
  ~Thread() { end_fiber(fiber); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
};

// The block that runs.
struct Block {
  std::vector<std::unique_ptr<Thread>> threads;
  std::size_t current = 0;
  ucontext_t scheduler{};
  Fiber fiber{};
  const std::function<void()>* body = nullptr;
  const char* error = nullptr;                          // a thread did what CUDA does not allow
  char start = 0, end = 0, barrier = 0, abandoned = 0;  // addresses that order threads
};
Block* block = nullptr;

Thread& current() { return *block->threads[block->current]; }

void to_scheduler() {
  release(&block->abandoned);
  on_switch(block->fiber);
  swapcontext(&current().context, &block->scheduler);
}

void begin_thread() {
  acquire(&block->start);
  (*block->body)();
  release(&block->end);
  current().waits = Waits::ended;
  to_scheduler();
}

void resume(std::size_t i) {
  block->current = i;
  threadIdx = current().index;
  on_switch(current().fiber);
  swapcontext(&block->scheduler, &current().context);
}

bool all_wait(std::size_t begin, std::size_t end, Waits how) {
  return std::all_of(block->threads.begin() + static_cast<std::ptrdiff_t>(begin),
                     block->threads.begin() + static_cast<std::ptrdiff_t>(end),
                     [&](const auto& thread) { return thread->waits == how; });
}

// Ends a block whose threads cannot go on.
[[noreturn]] void abandon(const std::string& why) {
  acquire(&block->abandoned);
  throw std::logic_error(why);
}

// Once all threads of the block have come to a barrier they go on.
void open_block() {
  auto& threads = block->threads;
  if (!all_wait(0, threads.size(), Waits::for_block)) return;
  for (const auto& thread : threads) {
    if (std::strcmp(thread->barrier, threads[0]->barrier) != 0)
      abandon(std::string("threads of a block wait at ") + thread->barrier + " and at " +
              threads[0]->barrier);
    thread->waits = Waits::no;
  }
}

// Once all lanes of thread i's warp shuffle they get what they asked for and go on.
void open_warp(std::size_t i) {
  auto& threads = block->threads;
  const auto begin = i / warpSize * warpSize, end = std::min(begin + warpSize, threads.size());
  if (!all_wait(begin, end, Waits::for_warp)) return;
  std::uint64_t given[warpSize] = {};
  for (auto j = begin; j < end; ++j) given[j - begin] = threads[j]->bits;
  for (auto j = begin; j < end; ++j) {
    threads[j]->bits = given[threads[j]->from];
    threads[j]->waits = Waits::no;
  }
}

std::string who_waits() {
  std::size_t at_barrier = 0, at_shuffle = 0, gone = 0;
  for (const auto& thread : block->threads) {
    at_barrier += thread->waits == Waits::for_block;
    at_shuffle += thread->waits == Waits::for_warp;
    gone += thread->waits == Waits::ended;
  }
  return "a block waits for ever: " + std::to_string(at_barrier) + " threads at a barrier, " +
         std::to_string(at_shuffle) + " at a shuffle, " + std::to_string(gone) + " gone";
}

void run_block(std::mt19937_64& random) {
  for (const auto& thread : block->threads) {
    thread->waits = Waits::no;
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = thread->stack.get();
    thread->context.uc_stack.ss_size = kStackBytes;
    thread->context.uc_link = nullptr;
    makecontext(&thread->context, begin_thread, 0);
  }
  release(&block->start);
  // One thread at a time, as far as it goes: with turns that are not random a warp gets ahead of
  // the others until a barrier stops it.
  std::vector<std::size_t> ready;
  for (;;) {
    ready.clear();
    for (std::size_t i = 0; i < block->threads.size(); ++i)
      if (block->threads[i]->waits == Waits::no) ready.push_back(i);
    if (ready.empty()) {
      if (all_wait(0, block->threads.size(), Waits::ended)) break;
      abandon(who_waits());
    }
    const std::size_t next = schedule.turns == Turns::forward    ? ready.front()
                             : schedule.turns == Turns::backward ? ready.back()
                                                                 : ready[random() % ready.size()];
    resume(next);
    if (block->error != nullptr) abandon(block->error);
    if (block->threads[next]->waits == Waits::for_block) open_block();
    if (block->threads[next]->waits == Waits::for_warp) open_warp(next);
  }
  acquire(&block->end);
}

}  // namespace

void run(dim3 grid, dim3 threads, const std::function<void()>& body) {
  Block own;
  block = &own;
  own.body = &body;
  own.fiber = this_fiber();
  gridDim = grid, blockDim = threads;
  for (unsigned z = 0; z < threads.z; ++z)
    for (unsigned y = 0; y < threads.y; ++y)
      for (unsigned x = 0; x < threads.x; ++x) {
        own.threads.push_back(std::make_unique<Thread>());
        own.threads.back()->index = {x, y, z};
      }
  std::vector<uint3> blocks;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) blocks.push_back({x, y, z});
  std::mt19937_64 random(schedule.seed);
  if (schedule.turns == Turns::backward) std::reverse(blocks.begin(), blocks.end());
  if (schedule.turns == Turns::random) std::shuffle(blocks.begin(), blocks.end(), random);
  for (const auto& index : blocks) {
    blockIdx = index;
    run_block(random);
  }
}

void wait_for_block(const char* barrier) {
  note(barrier);
  if (std::strcmp(skip.c_str(), barrier) == 0) return;
  current().barrier = barrier;
  current().waits = Waits::for_block;
  release(&block->barrier);
  to_scheduler();
  acquire(&block->barrier);
}

std::uint64_t exchange(unsigned mask, std::uint64_t bits, unsigned from) {
  if (mask != 0xffffffffu || block->threads.size() % warpSize != 0) {
    block->error = "a shuffle with a part of a warp";
    to_scheduler();
  }
  current().bits = bits;
  current().from = from;
  current().waits = Waits::for_warp;
  to_scheduler();
  return current().bits;
}

std::set<std::string> take_barriers() {
  std::set<std::string> all(barriers, barriers + n_barriers);
  n_barriers = 0;
  return all;
}

unsigned lane() { return static_cast<unsigned>(block->current % warpSize); }

}  // namespace emulated
