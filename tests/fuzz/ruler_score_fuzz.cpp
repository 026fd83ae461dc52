// Problems and answers of any bytes give a score of 0 to 100 or an Error. The lines before the
// first empty line are problems, the others answers.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "core/error.h"
#include "fuzz/target.h"
#include "task/ruler.h"

FUZZ_TARGET(ruler_score)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto cut = std::min(text.find("\n\n"), size);
  const auto lines = [](std::string_view part) {
    return core::LineReader(std::make_unique<core::MemorySource>(part));
  };
  try {
    auto asked = lines(text.substr(0, cut)), answers = lines(text.substr(cut));
    task::RulerScore score(task::read_ruler_problems(asked));
    while (const auto line = answers.next())
      if (!line->empty()) score.add(*line, "here:1");
    const auto mean = score.total()["score"].get<double>();
    if (!(mean >= 0 && mean <= 100 + 1e-9)) std::abort();
    score.check_complete("here");
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
  }
}
