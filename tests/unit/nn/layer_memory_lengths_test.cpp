// Lengths of the layers' memories from one line: every place, and refusals.

#include "nn/layers/layer_memory.h"

#include <doctest/doctest.h>

#include <rapidcheck.h>

#include "core/error.h"

namespace {

using Lengths = std::vector<std::int64_t>;

// Returns the numbers of the layers that the pattern makes long, counted from 1.
Lengths long_layers(const std::string& place, std::int64_t layers) {
  Lengths chosen;
  const auto lengths = nn::parse_layer_memory("long=9 short=2 place=" + place, layers);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] == 9) chosen.push_back(static_cast<std::int64_t>(i) + 1);
  return chosen;
}

std::string refusal(const std::string& pattern, std::int64_t layers = 6) {
  try {
    nn::parse_layer_memory(pattern, layers);
  } catch (const core::Error& error) {
    DOCTEST_CHECK(error.code() == core::Code::bad_config);
    return error.what();
  }
  return "taken";
}

}  // namespace

DOCTEST_TEST_CASE("a list gives each layer its length, one number all of them") {
  DOCTEST_CHECK(nn::parse_layer_memory("512", 3) == Lengths{512, 512, 512});
  DOCTEST_CHECK(nn::parse_layer_memory("0,128,2K", 3) == Lengths{0, 128, 2000});
  DOCTEST_CHECK(nn::parse_layer_memory(" 5  6 7 ", 3) == Lengths{5, 6, 7});
  DOCTEST_CHECK(nn::parse_layer_memory("none", 2) == Lengths{0, 0});
}

DOCTEST_TEST_CASE("places are where the paper draws them") {
  DOCTEST_CHECK(long_layers("interleaved:4", 24) == Lengths{6, 12, 18, 24});
  DOCTEST_CHECK(
      long_layers("interleaved:12", 24) == Lengths{2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24});
  DOCTEST_CHECK(long_layers("interleaved:3", 18) == Lengths{6, 12, 18});
  DOCTEST_CHECK(long_layers("interleaved:3", 8) == Lengths{2, 5, 8});
  DOCTEST_CHECK(long_layers("interleaved:4 offset=2", 24) == Lengths{4, 10, 16, 22});
  DOCTEST_CHECK(long_layers("first:2", 6) == Lengths{1, 2});
  DOCTEST_CHECK(long_layers("last:1", 6) == Lengths{6});
  DOCTEST_CHECK(long_layers("middle:2", 6) == Lengths{3, 4});
  DOCTEST_CHECK(long_layers("middle:2", 7) == Lengths{3, 4});
  DOCTEST_CHECK(long_layers("all", 3) == Lengths{1, 2, 3});
  DOCTEST_CHECK(long_layers("none", 3).empty());
  DOCTEST_CHECK(nn::parse_layer_memory("place=last:1 long=4", 3) == Lengths{0, 0, 4});
}

DOCTEST_TEST_CASE("every place makes as many layers long as it says, and the others short") {
  rc::check([] {
    const auto layers = *rc::gen::inRange<std::int64_t>(1, 40);
    const auto n = *rc::gen::inRange<std::int64_t>(0, layers + 1);
    const std::string place = *rc::gen::element("first", "last", "middle", "interleaved");
    const auto lengths =
        nn::parse_layer_memory("long=7 short=3 place=" + place + ":" + std::to_string(n), layers);
    RC_ASSERT(std::ssize(lengths) == layers);
    RC_ASSERT(std::count(lengths.begin(), lengths.end(), 7) == n);
    RC_ASSERT(std::count(lengths.begin(), lengths.end(), 3) == layers - n);
  });
}

DOCTEST_TEST_CASE("what makes no sense is refused by name") {
  const auto says = [](const std::string& pattern, const std::string& part) {
    DOCTEST_CAPTURE(pattern);
    const auto text = refusal(pattern);
    DOCTEST_CAPTURE(text);
    DOCTEST_CHECK(text.find("layer-memory: ") == 0);
    DOCTEST_CHECK(text.find(part) != std::string::npos);
  };
  says("", "is empty");
  says("1,2", "2 lengths for 6 layers");
  says("1,-2,3,4,5,6", "'-2' is not a number");
  says("many", "'many' is not a number");
  says("long=5", "place= is missing");
  says("long=5 place=top:2", "takes all, none, first:N");
  says("long=5 place=last", "last takes :N");
  says("long=5 place=all:3", "all takes no number");
  says("long=5 place=last:7", "there are 6 layers");
  says("long=x place=last:1", "'x' is not a number");
  says("long=5 size=3 place=all", "'size=3': takes");
  says("long=5 place=last:1 offset=1", "requires place=interleaved");
  says("long=5 place=interleaved:3 offset=2", "a group has 2 layers");
}
