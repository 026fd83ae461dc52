// The threads of a block as fibers of one thread of the system. ThreadSanitizer is told of them and
// of what orders them, so this file itself is compiled without it.

#include <ucontext.h>

#include <algorithm>
#include <bit>
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

// Where a stack was left. swapcontext costs two system calls, which would take most of a test's
// time, and longjmp of the library is watched by the sanitizers and refuses other stacks.
struct Place {
  ucontext_t context{};
  void* jump[5] = {};
  bool begun = false;
};

[[gnu::noinline]] void switch_stacks(Place& from, Place& to) {
  from.begun = true;
  if (__builtin_setjmp(from.jump) != 0) return;
  if (to.begun) __builtin_longjmp(to.jump, 1);
  setcontext(&to.context);
}

// Numbers below a size, in order.
class Numbers {
 public:
  void fill(std::size_t size) {
    words_.assign((size + 63) / 64, ~std::uint64_t{0});
    if (size % 64 != 0) words_.back() >>= 64 - size % 64;
    count_ = size;
  }
  std::size_t count() const { return count_; }
  void add(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << i % 64, ++count_; }
  void remove(std::size_t i) { words_[i / 64] &= ~(std::uint64_t{1} << i % 64), --count_; }
  /// Returns the number that has n smaller ones.
  std::size_t at(std::size_t n) const {
    std::size_t word = 0;
    for (std::size_t here; n >= (here = static_cast<std::size_t>(std::popcount(words_[word])));
         ++word)
      n -= here;
    std::uint64_t bits = words_[word];
    for (; n > 0; --n) bits &= bits - 1;
    return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
  }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t count_ = 0;
};

enum class Waits { no, for_block, for_warp, ended };

struct Thread {
  Place place;
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
  Numbers ready;  // threads that wait for nothing
  std::size_t at_barrier = 0;
  std::vector<std::size_t> at_shuffle;  // by warp
  Place scheduler;
  Fiber fiber{};
  const std::function<void()>* body = nullptr;
  const char* error = nullptr;                          // a thread did what CUDA does not allow
  char start = 0, end = 0, barrier = 0, abandoned = 0;  // addresses that order threads
};
Block* block = nullptr;
std::vector<std::unique_ptr<Thread>> idle;  // threads of blocks that have ended, to be used again

Thread& current() { return *block->threads[block->current]; }

void to_scheduler() {
  release(&block->abandoned);
  on_switch(block->fiber);
  switch_stacks(current().place, block->scheduler);
}

// The body for one block after another.
void begin_thread() {
  for (;;) {
    acquire(&block->start);
    (*block->body)();
    release(&block->end);
    current().waits = Waits::ended;
    to_scheduler();
  }
}

[[gnu::noinline]] void set_up(Thread& thread) {
  ucontext_t& context = thread.place.context;
  getcontext(&context);
  context.uc_stack.ss_sp = thread.stack.get();
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, begin_thread, 0);
}

// A stack and a fiber are dear to the sanitizers.
std::unique_ptr<Thread> take_thread() {
  if (idle.empty()) {
    auto thread = std::make_unique<Thread>();
    set_up(*thread);
    return thread;
  }
  auto thread = std::move(idle.back());
  idle.pop_back();
  return thread;
}

void resume(std::size_t i) {
  block->current = i;
  threadIdx = current().index;
  on_switch(current().fiber);
  switch_stacks(block->scheduler, current().place);
}

// Ends a block whose threads cannot go on.
[[noreturn]] void abandon(const std::string& why) {
  acquire(&block->abandoned);
  throw std::logic_error(why);
}

// Once all threads of the block have come to a barrier they go on.
void open_block() {
  auto& threads = block->threads;
  if (block->at_barrier < threads.size()) return;
  for (const auto& thread : threads) {
    if (std::strcmp(thread->barrier, threads[0]->barrier) != 0)
      abandon(std::string("threads of a block wait at ") + thread->barrier + " and at " +
              threads[0]->barrier);
    thread->waits = Waits::no;
  }
  block->at_barrier = 0;
  block->ready.fill(threads.size());
}

// Once all lanes of a warp shuffle they get what they asked for and go on.
void open_warp(std::size_t warp) {
  auto& threads = block->threads;
  const auto begin = warp * warpSize, end = std::min(begin + warpSize, threads.size());
  if (block->at_shuffle[warp] < end - begin) return;
  std::uint64_t given[warpSize] = {};
  for (auto j = begin; j < end; ++j) given[j - begin] = threads[j]->bits;
  for (auto j = begin; j < end; ++j) {
    threads[j]->bits = given[threads[j]->from];
    threads[j]->waits = Waits::no;
    block->ready.add(j);
  }
  block->at_shuffle[warp] = 0;
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
  const std::size_t n = block->threads.size();
  for (const auto& thread : block->threads) thread->waits = Waits::no;
  block->ready.fill(n);
  block->at_barrier = 0;
  block->at_shuffle.assign((n + warpSize - 1) / warpSize, 0);
  std::size_t ended = 0;
  release(&block->start);
  // One thread at a time, as far as it goes: with turns that are not random a warp gets ahead of
  // the others until a barrier stops it.
  while (ended < n) {
    const std::size_t ready = block->ready.count();
    if (ready == 0) abandon(who_waits());
    const std::size_t next =
        block->ready.at(schedule.turns == Turns::forward    ? 0
                        : schedule.turns == Turns::backward ? ready - 1
                                                            : random() % ready);
    block->ready.remove(next);
    resume(next);
    if (block->error != nullptr) abandon(block->error);
    const Waits waits = block->threads[next]->waits;
    if (waits == Waits::ended) ++ended;
    if (waits == Waits::for_block) ++block->at_barrier, open_block();
    if (waits == Waits::for_warp) ++block->at_shuffle[next / warpSize], open_warp(next / warpSize);
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
        own.threads.push_back(take_thread());
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
  for (auto& thread : own.threads) idle.push_back(std::move(thread));
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
