#pragma once
// Declares a fuzz target. tests/fuzz/NAME_fuzz.cpp contains
//
//   FUZZ_TARGET(NAME)(const std::uint8_t* data, std::size_t size) { ... }
//
// which must neither abort, crash nor throw for any bytes. If its format has checksums, it also
// contains
//
//   FUZZ_REPAIR(NAME)(std::vector<std::byte>& bytes) { ... }
//
// which corrects them, as a forger would, so that mutated inputs are not all refused at once. It
// leaves alone what it cannot parse. It throws only core::Error, which leaves the rest unchanged.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fuzz {

struct Target {
  void (*run)(const std::uint8_t* data, std::size_t size) = nullptr;
  void (*repair)(std::vector<std::byte>& bytes) = nullptr;  // nullptr: nothing to repair
};

/// Returns the targets of this program by name. They are complete when main() begins.
inline std::map<std::string, Target>& targets() {
  static std::map<std::string, Target> all;
  return all;
}

}  // namespace fuzz

#define FUZZ_TARGET(name)                                                                   \
  static void run_##name(const std::uint8_t*, std::size_t);                                 \
  [[maybe_unused]] static const auto kRun_##name = fuzz::targets()[#name].run = run_##name; \
  static void run_##name

#define FUZZ_REPAIR(name)                                                             \
  static void repair_##name(std::vector<std::byte>&);                                 \
  [[maybe_unused]] static const auto kRepair_##name = fuzz::targets()[#name].repair = \
      repair_##name;                                                                  \
  static void repair_##name
