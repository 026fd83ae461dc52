// Visibility: pairs compared with the cases of the papers, ranges compared with all of their pairs.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "nn/base/memory_rule.h"
#include "nn/kernels/visibility_rule.h"
#include "plain_sees.h"

namespace {

// Three runs of segments of three tokens. With `padded`, every seventh token is padding.
std::vector<nn::TokenPosition> stream(bool padded) {
  std::vector<nn::TokenPosition> tokens;
  std::int64_t segment = 0;
  for (const std::int64_t length : {9, 2, 12}) {
    const auto run =
        static_cast<std::int64_t>(segment);  // an id is the number of its first segment
    for (std::int64_t i = 0; i < length; ++i) {
      if (i > 0 && i % 3 == 0) ++segment;
      const bool padding = padded && tokens.size() % 7 == 6;
      tokens.push_back({padding ? -1 : run, segment, std::ssize(tokens)});
    }
    ++segment;
  }
  return tokens;
}

std::vector<nn::MemoryRule> visible_rules() {
  std::vector<nn::MemoryRule> all;
  for (const char* names :
      {"none", "local", "long", "ext", "local,long", "local,ext", "long,ext", "local,long,ext"})
    for (const bool drop : {false, true})
      for (const std::int64_t reach : {0, 1, 4}) {
        nn::MemoryRule rule = nn::MemoryRule::parse(names);
        rule.drop_own_segment = drop, rule.reach = reach;
        all.push_back(rule);
      }
  return all;
}

nn::PositionRange range(
    const std::vector<nn::TokenPosition>& tokens, std::size_t begin, std::size_t end) {
  nn::PositionRange all;
  for (std::size_t i = begin; i < end; ++i) all.add(tokens[i]);
  return all;
}

}  // namespace

DOCTEST_TEST_CASE("a pair sees as the cases say that are written out") {
  for (const bool padded : {false, true}) {
    const auto tokens = stream(padded);
    for (const auto& rule : visible_rules()) {
      std::int64_t wrong = 0;
      for (const auto& query : tokens)
        for (const auto& entry : tokens)
          wrong += nn::sees(rule, query, entry) != plain::sees(rule, query, entry);
      DOCTEST_CAPTURE(rule.name());
      DOCTEST_CHECK(wrong == 0);
    }
  }
}

DOCTEST_TEST_CASE("ranges that see all or nothing of each other do so for every pair") {
  for (const bool padded : {false, true}) {
    const auto tokens = stream(padded);
    const auto n = tokens.size();
    for (const auto& rule : visible_rules()) {
      std::int64_t wrong = 0;
      for (const std::size_t asking : {1, 4})
        for (const std::size_t asked : {1, 5})
          for (std::size_t q = 0; q + asking <= n; ++q)
            for (std::size_t e = 0; e + asked <= n; ++e) {
              const auto kind = nn::range_visibility(
                  rule, range(tokens, q, q + asking), range(tokens, e, e + asked));
              std::size_t seen = 0;
              for (std::size_t i = q; i < q + asking; ++i)
                for (std::size_t j = e; j < e + asked; ++j)
                  seen += plain::sees(rule, tokens[i], tokens[j]);
              wrong += kind == nn::Seen::none && seen != 0;
              wrong += kind == nn::Seen::all && seen != asking * asked;
            }
      DOCTEST_CAPTURE(rule.name());
      DOCTEST_CHECK(wrong == 0);
    }
  }
}

// A range_visibility() that always returned "some" would be correct but slow.
DOCTEST_TEST_CASE("ranges are not looked into where they are seen whole or not at all") {
  const auto tokens = stream(false);  // runs: [0, 9), [9, 11), [11, 23)
  const auto kind = [&](const char* names, std::size_t query, std::size_t begin, std::size_t end,
                        bool drop = false, std::int64_t reach = 0) {
    nn::MemoryRule rule = nn::MemoryRule::parse(names);
    rule.drop_own_segment = drop, rule.reach = reach;
    return nn::range_visibility(rule, range(tokens, query, query + 1), range(tokens, begin, end));
  };
  using nn::Seen;
  DOCTEST_CHECK(kind("long", 8, 0, 8) == Seen::all);
  DOCTEST_CHECK(kind("long", 8, 0, 8, false, 8) == Seen::all);
  DOCTEST_CHECK(kind("long", 8, 0, 4, false, 4) == Seen::none);
  DOCTEST_CHECK(kind("long", 8, 0, 8, false, 4) == Seen::some);
  DOCTEST_CHECK(kind("long", 2, 2, 9) == Seen::none);
  DOCTEST_CHECK(kind("long", 12, 0, 9) == Seen::none);
  DOCTEST_CHECK(kind("long", 8, 0, 6, true) == Seen::all);
  DOCTEST_CHECK(kind("long", 8, 6, 8, true) == Seen::none);
  DOCTEST_CHECK(kind("local", 8, 6, 8) == Seen::all);
  DOCTEST_CHECK(kind("local", 8, 0, 6) == Seen::none);
  DOCTEST_CHECK(kind("local", 8, 4, 8) == Seen::some);
  DOCTEST_CHECK(kind("ext", 8, 9, 23) == Seen::all);
  DOCTEST_CHECK(kind("ext", 8, 0, 9) == Seen::none);
  DOCTEST_CHECK(kind("local,ext", 8, 6, 8, true) == Seen::none);
}
