// Options chosen for sources that do not take part.
#include <doctest/doctest.h>

#include <string>

#include "infer/sources/memory_plan.h"
#include "tiny.h"
#include "unit/thrown.h"

DOCTEST_TEST_CASE("an option given for a source that does not take part is refused") {
  nn::Model model = tiny::model_of("transformer");
  const auto windows = tiny::windows_of(8, 8);
  auto options = tiny::memory_of("none");
  std::size_t refused = 0;
  for (const auto* const kind : infer::source_kinds())
    for (const auto& name : kind->options()) {
      options.chosen = {name};
      const auto error = thrown([&] { infer::plan_memory(options, windows, model); });
      DOCTEST_CHECK_MESSAGE(error.code == 64, name);
      DOCTEST_CHECK_MESSAGE(error.text.starts_with("--" + name + ": requires --"), error.text);
      DOCTEST_CHECK_MESSAGE(error.names("--" + kind->name()), error.text);
      ++refused;
    }
  DOCTEST_CHECK(refused > 20);
}

DOCTEST_TEST_CASE("an option given for a source that takes part is not refused") {
  nn::Model model = tiny::model_of("transformer");
  const auto windows = tiny::windows_of(8, 8);
  auto options = tiny::memory_of("local");
  tiny::cache(options).positions = 5;
  for (const auto* const kind : infer::source_kinds())
    for (const auto& name : kind->options()) {
      options.chosen = {name, "memory", "cache"};
      const bool present = kind->name() == "memory" || kind->name() == "cache";
      const auto error = thrown([&] { infer::plan_memory(options, windows, model); });
      DOCTEST_CHECK_MESSAGE((error.code == 0) == present, name, error.text);
    }
  // Options that two sources use require one of them.
  tiny::context(options).memory = "none";
  options.chosen = {"joint-temperature"};
  DOCTEST_CHECK(thrown([&] {
    infer::plan_memory(options, windows, model);
  }).names("--joint-temperature: requires --memory or --datastore"));
}
